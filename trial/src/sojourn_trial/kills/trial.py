"""A broker and an application whose processes are killed, and the records in its topics.

Used by benchmarks and tests: `schedule` draws the kills, `ledger` compares the results.
"""

import os
import re
import shutil
import signal
import sys
import threading
import time
from bisect import bisect
from contextlib import ExitStack, closing, suppress

import psutil
from confluent_kafka import Producer

from sojourn.app.loading import load
from sojourn.app.streams import writers
from sojourn.spark.driver.kafka.broker import Broker
from sojourn.spark.driver.kafka.cluster import Cluster
from sojourn.spark.driver.kafka.ports import free_ports
from sojourn.spark.driver.layout import Layout
from sojourn.spark.driver.state.checkpoints import Checkpoints
from sojourn.spark.driver.state.shared_folder import SharedState, written_by_tasks
from sojourn.spark.host.batch.cut_store import CutFiles
from sojourn.spark.host.state.expiry import unstamped
from sojourn.spark.processor.state_codec import StateCodec
from sojourn_trial.kills.driven import Driver
from sojourn_trial.kills.ledger import length, written, written_at
from sojourn_trial.kills.schedule import OF_NODES, STARTED_AGAIN
from sojourn_trial.kills.victims import on_nodes

BROKER_AWAY_S = 2.0
_LOOK_S = 0.05
# The interval of polling: files at the end of a batch follow each other within milliseconds.
_WATCH_S = 0.0005
_PATIENCE_S = 240.0
# Incomplete files of Spark and of Sojourn have other names.
_IS_COMPLETE = re.compile(r"[0-9-]+").fullmatch


class Trial:
    """The application at *address* and its own broker, both with their files in *folder*.

    Topics have *partitions* partitions. After a kill, a restart resumes from the files. The
    application runs on a trial *cluster*, if there is one.
    """

    def __init__(  # noqa: PLR0913 - all but the first by name
        self,
        folder,
        address,
        *,
        allocation,
        batch_s=5.0,
        partitions=1,
        jars=None,
        cluster=None,
    ):
        port, _ = free_ports(None)
        self.app = load(address)
        self.layout = Layout(self.app, address)
        self._partitions = partitions
        self.broker = Broker(data=folder / "broker", port=port, jars=jars, secured=False)
        self._folder, self._address = folder, address
        self._settings = {"allocation": allocation, "batch_s": batch_s}
        self.cluster = cluster
        if cluster is not None:
            self._settings["spark"] = spark_on(cluster)
        self._stack = ExitStack()
        self.left, self.killed = [], []

    def __enter__(self):
        with ExitStack() as stack:
            stack.enter_context(self.broker)
            self.servers = self.broker.bootstrap_servers
            topics = [self.app.topic(name) for name in self.layout.streams]
            Cluster(self.servers).ensure(topics, self._partitions)
            self.driver = Driver(self._folder, self._address, self.servers, **self._settings)
            stack.callback(self.driver.stop)
            self.driver.start()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_):
        self._stack.close()

    def sending(self, stream, payloads, per_s):
        """Return the thread that writes *payloads* to a source at the rate *per_s*.

        A payload is the value of a message, or its value and its headers.
        """
        producer = Producer(
            {"bootstrap.servers": self.servers, "enable.idempotence": True, "log_level": 0}
        )

        def send():
            began_s = time.monotonic()
            for number, payload in enumerate(payloads):
                time.sleep(max(0.0, began_s + number / per_s - time.monotonic()))
                value, headers = payload if isinstance(payload, tuple) else (payload, {})
                producer.produce(self.app.topic(stream), value, headers=headers)
                producer.poll(0)
            producer.flush()

        thread = threading.Thread(target=send, daemon=True)
        thread.start()
        return thread

    @property
    def state(self):
        """The checkpoints from which the application resumes."""
        folder, queries = self.driver.folder, written_by_tasks(self.layout)
        return Checkpoints(folder, SharedState(folder).folder, frozenset(queries))

    def written(self, stream):
        """Return the payloads in the topic of a stream or a sink."""
        return written(self.servers, self.app.topic(stream))

    def states(self, operator):
        """Return the last committed state of each key of an operator."""
        part = self.layout.part_of[operator].name
        codec = StateCodec(operator, self.app.operators[operator].state)
        files, batch = CutFiles(self.state.cuts(part)), self.state.commits(part) - 1
        if batch < 0:
            return {}
        cut = files.load(files.last(batch))
        with closing(files):
            return {
                key: codec.decode(unstamped(state))
                for key, state in files.state.states(operator, cut.changed)
            }

    def length(self, stream):
        """Return the number of records in the topic of a stream or a sink."""
        return length(self.servers, self.app.topic(stream))

    def queries_before(self, stream):
        """Return the queries upstream of a stream, the nearest first."""
        layout, found, ahead = self.layout, [], [stream]
        for name in ahead:
            for writer in writers(name, self.app.operators):
                query = layout.part_of[writer].name if writer in layout.part_of else writer
                if query not in found:
                    found.append(query)
                    topics = layout.query_reads(query)
                    # the outer loop iterates over these, too
                    ahead += [s for s in layout.streams if self.app.topic(s) in topics]
        return found

    def in_batches(self, stream, query, times_s):
        """Return, for each time, the number of distinct records in the batch around it.

        That is the records of *stream* between the commits of *query* before and after it.
        """
        commits_s = sorted(
            path.stat().st_mtime
            for path in (self.state.checkpoint(query) / "commits").glob("[0-9]*")
        )
        batches = {}
        for at_s, payload in written_at(self.servers, self.app.topic(stream)):
            batches.setdefault(bisect(commits_s, at_s), set()).add(payload)
        return [len(batches.get(bisect(commits_s, at_s), ())) for at_s in times_s]

    def kill(self, target, pick=0.0):
        """Kill a *target*, and restart it unless the application does that itself."""
        self.killed.append((time.time(), target))
        if target == "broker":
            os.killpg(self.broker.process_group, signal.SIGKILL)
            self.broker.stop()
            time.sleep(BROKER_AWAY_S)
            self.broker.start()
            return
        if target == "node":
            there = self.cluster.workers
            self.cluster.kill(there[int(pick * len(there))].number)
            self.cluster.add()
            return
        victims = self._victims(target)
        if not victims:  # just killed, and not restarted yet
            return
        if target not in STARTED_AGAIN:
            with suppress(psutil.NoSuchProcess):
                victims[int(pick * len(victims))].kill()
            return
        self._killed(victims, self.driver.family(), target)

    def _victims(self, target):
        if self.cluster is None or target not in OF_NODES:
            return self.driver.victims(target)
        return on_nodes(self.cluster.folder, target)

    def kill_at(self, moment, query):
        """Kill at a *moment* of a batch of *query*, and return the name of its file."""
        log = self.state.checkpoint(query) / moment.log
        java, family = self.driver.victims("jvm"), self.driver.family()
        # Java first, because it commits
        victims = sorted(self.driver.victims(moment.target), key=lambda p: p not in java)
        name = _appeared(log, moment.batches)
        time.sleep(moment.after_s)
        self._killed(victims, family, moment.target)
        return name

    def _killed(self, victims, family, target):
        for victim in victims:
            with suppress(psutil.NoSuchProcess):
                victim.kill()
        self.start_again(family, target)

    def start_again(self, family, target):
        """Restart the application after a *target* of its *family* of processes was killed."""
        if target == "driver":
            self.left += self.driver.ended(family)[0]
        else:  # no process is left to remove the temporary files of Java
            if target == "jvm":
                self.driver.stop()
            psutil.wait_procs(family, timeout=_PATIENCE_S)
            self.driver.ended(family, patience_s=0.0)
            shutil.rmtree(self.driver.temporary)
            self.driver.temporary.mkdir()
        self.driver.start()

    def settle(self, done, *, patience_s=_PATIENCE_S):
        """Poll *done* until it is true, or for *patience_s*, and return its last value."""
        until_s = time.monotonic() + patience_s
        while not (so_far := done()) and time.monotonic() < until_s:
            time.sleep(10 * _LOOK_S)
        return so_far


def spark_on(cluster):
    """Return the settings of Spark for an application on a trial cluster."""
    return {
        "spark.master": cluster.master,
        "spark.driver.host": cluster.driver_address,
        "spark.executor.cores": "6",
        "spark.executor.memory": "700m",
    }


def _appeared(log, number, *, patience_s=_PATIENCE_S):
    """Return the name of a new file in *log*, after *number* other new ones."""
    until_s = time.monotonic() + patience_s
    seen = set(_files(log))
    while time.monotonic() < until_s:
        for name in set(_files(log)) - seen:
            seen.add(name)
            number -= 1
            if number < 0:
                return name
        time.sleep(_WATCH_S)
    raise SystemExit(f"no batch ends: {log} holds {sorted(seen)}")


def _files(log):
    with suppress(FileNotFoundError):
        return [path.name for path in log.iterdir() if _IS_COMPLETE(path.name)]
    return []


def say(line):
    """Print the progress on standard error."""
    sys.stderr.write(f"{line}\n")

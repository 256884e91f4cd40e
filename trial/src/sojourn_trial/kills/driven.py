"""An application on Spark in a separate process, so that its driver can be killed, too.

    python driven.py FOLDER ADDRESS SERVERS BATCH_S PER_S SPARK NAME=PROCESSORS…

It starts the application at ADDRESS with its state in FOLDER. PER_S are the expected records
per second of its sources, unless it is a topology file. SPARK are settings of Spark in JSON,
with the master if it runs on a cluster. It observes the engine every second, and executes
requests, one line of JSON each, until its input ends: `["scale", {…}]`, `["health"]`,
`["drain"]`.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import psutil

from sojourn.app.loading import load
from sojourn.decide.plan import Plan
from sojourn.errors import ApplicationStopped, EngineError
from sojourn.spark.driver.master import LOCAL
from sojourn.spark.driver.settings import SparkSettings
from sojourn.spark.driver.spark_engine import SparkEngine
from sojourn.topology.file import read_topology
from sojourn_trial.kills.victims import found, running

_HERE = Path(__file__)
_LOOK_S = 0.05
_EVERY_S = 1.0
_ENDS_S = 120.0


class Driver:
    """The client of that process; a context manager that ends the application.

    *folder* contains its state, its temporary files, and the output of the process and Spark.
    """

    def __init__(  # noqa: PLR0913 - most by name
        self, folder, address, servers, *, batch_s, allocation, per_s=1.0, spark=None
    ):
        self.folder, self.temporary = folder / "state", folder / "tmp"
        self.log = folder / "driver.log"
        self.temporary.mkdir(parents=True, exist_ok=True)
        self._command = [
            *(sys.executable, _HERE, self.folder, address, servers, str(batch_s), str(per_s)),
            json.dumps(spark or {}),
            *(f"{name}={processors}" for name, processors in allocation.items()),
        ]
        self._process = None

    def start(self):
        """Start the application, and return the seconds until it could take records."""
        began_s = time.monotonic()
        paths = [os.environ.get("PYTHONPATH", ""), *sys.path]
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
            # of its own, so that files left behind can be found
            "TMPDIR": str(self.temporary),
            "JAVA_TOOL_OPTIONS": f"-Djava.io.tmpdir={self.temporary}",
        }
        with self.log.open("a") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment,
                text=True,
            )
        try:
            self._answer()
        except BaseException:
            self._process.kill()  # its children end with it
            self._close()
            raise
        return time.monotonic() - began_s

    def scale(self, **allocation):
        """Set the processors of operators."""
        return self._told("scale", allocation)

    def health(self):
        """Return restarts, replayed records, failure and nodes since the start."""
        return self._told("health")

    def drain(self):
        """Drain the application; return the reason if that failed, otherwise ""."""
        return self._told("drain")

    def family(self):
        """Return all processes of the application, the driver first."""
        whole = psutil.Process(self._process.pid)
        return [whole, *whole.children(recursive=True)]

    def victims(self, target, operator=None):
        """Return the processes that are a *target* of `schedule`, of *operator* or of all."""
        family = self.family()
        pids = found([running(process) for process in family], target, operator)
        return [process for process in family if process.pid in pids]

    def kill(self, *, patience_s=30.0):
        """Kill the driver; return the processes and files it left, and the seconds it took.

        Wait until nothing is left, or for *patience_s*.
        """
        return self.ended(self.family(), patience_s=patience_s)

    def ended(self, family, *, patience_s=30.0):
        """Return the same as `kill` for a driver with this *family*, dead or alive."""
        began_s = time.monotonic()
        self._process.kill()
        self._close()
        while (left := self._left(family)) and time.monotonic() < began_s + patience_s:
            time.sleep(_LOOK_S)
        return left, time.monotonic() - began_s

    def _left(self, family):
        return [
            *(
                f"process {process.pid}: {' '.join(running(process).command)[:80]}"
                for process in family
                if _is_there(process)
            ),
            *(f"folder {path}" for path in self.temporary.iterdir()),
        ]

    def stop(self):
        """Stop the application by closing its input; kill it if that takes too long."""
        if self._process is None:
            return
        try:
            with suppress(OSError):  # the process may have ended
                self._process.stdin.close()
            self._process.wait(_ENDS_S)
        finally:
            self._process.kill()
            self._close()

    def _close(self):
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError):  # unread output
                pipe.close()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def _told(self, *request):
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self):
        line = self._process.stdout.readline()
        if not line:
            said = self.log.read_text(errors="replace")[-2000:]
            raise SystemExit(f"the driver ended with status {self._process.wait()}:\n{said}")
        return json.loads(line)


def _is_there(process):
    with suppress(psutil.Error):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def topology_of(address, app, per_s=1.0):
    """Return the topology of the file at *address*, or that from the hints of *app*."""
    if address.endswith((".json", ".yaml")):
        return read_topology(Path(address))
    return app.topology(dict.fromkeys(app.sources, per_s))


def _done(engine, what, *details):
    match what:
        case "scale":
            changed = engine.apply(Plan.here({**engine.plan.allocation, **details[0]})).changed
            return {name: list(numbers) for name, numbers in changed.items()}
        case "drain":
            try:
                engine.drain()
            except EngineError as error:
                return str(error)
            return ""
        case _:
            health = engine.health()
            return {
                "restarts": dict(health.restarts),
                "replayed": health.replayed,
                "retried": health.retried,
                "running": dict(health.running),
                "failure": health.failure,
                "nodes": [node.name for node in engine.nodes],
            }


def _observe(engine, ended):
    while not ended.is_set():
        try:
            engine.observe(engine.now_s + _EVERY_S)
        except ApplicationStopped:
            return  # reported by `health`
        except EngineError:
            pass  # for example the broker is down: retry


def main(folder, address, servers, batch_s, per_s, spark, *allocation):
    """Run the application until standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the client ends this process
    app = load(address)
    options = json.loads(spark)
    settings = SparkSettings(
        servers=servers,
        state=Path(folder),
        batch_s=float(batch_s),
        master=options.pop("spark.master", LOCAL),
        spark=options,
    )
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # output of libraries must not mix with answers
    ended = threading.Event()
    with SparkEngine(app, address, settings) as engine:
        processors = dict(told.split("=") for told in allocation)
        engine.start(
            topology_of(address, app, float(per_s)),
            Plan.here({n: int(k) for n, k in processors.items()}),
        )
        answers.write("{}\n")
        looking = threading.Thread(target=_observe, args=(engine, ended))
        looking.start()
        for line in sys.stdin:
            answers.write(json.dumps(_done(engine, *json.loads(line))) + "\n")
        ended.set()
        looking.join()


if __name__ == "__main__":
    main(*sys.argv[1:])

"""A chain of operators in Quix Streams: a process for each, one topic after the other."""

import json
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import psutil
from confluent_kafka import KafkaException

from sojourn.spark.driver.kafka.cluster import Cluster

_HERE = Path(__file__).parent
_PROJECT = _HERE.parent / "pyproject.toml"
_PATIENCE_S, _ENDS_S, _LOOK_S = 120.0, 30.0, 0.1


def environment(folder):
    """Return the Python of a new virtual environment in *folder*, with the group `peers`.

    Quix Streams wants an older client of Kafka than the one that we are tested with.
    """
    uv = shutil.which("uv") or shutil.which("uv", path=Path(sys.executable).parent)
    if uv is None:
        raise SystemExit("uv is not installed; install it with `pip install uv`")
    python = folder / "bin" / "python"
    subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, folder], check=True)
    install = [uv, "pip", "install", "--quiet", "--compile-bytecode", "--python", python]
    subprocess.run([*install, "--group", f"{_PROJECT}:peers"], check=True)
    return python


def linger_for(per_s):
    """Return how many milliseconds a producer waits for more records at *per_s*.

    Nothing at low rates. A producer that sends each of a thousand records per second alone
    keeps the broker busy, for which all of them wait: then 1 ms is better than none. The
    client's own default is 5 ms, which is best where throughput is all that matters.
    """
    return min(5.0, round(per_s / 1000, 1))


def await_members(servers, group, check=lambda: None):
    """Return when somebody in a consumer group has partitions to read, or *check* raises."""
    client, until_s = Cluster(servers).client(), time.monotonic() + _PATIENCE_S
    while time.monotonic() < until_s:
        with suppress(KafkaException):  # the group may not be there yet
            found = client.describe_consumer_groups([group])[group].result()
            if any(member.assignment.topic_partitions for member in found.members):
                return
        check()
        time.sleep(_LOOK_S)
    raise TimeoutError(f"nobody reads as {group} after {_PATIENCE_S} s")


class QuixChain:
    """The processes of a chain through *topics*; leaving it ends them.

    Each runs a *script*, has its state and what it prints in *folder*, and commits every
    *commit_s*.
    """

    def __init__(  # noqa: PLR0913 - they differ from run to run
        self,
        python,
        folder,
        servers,
        topics,
        *,
        commit_s,
        linger_ms,
        script="quix_operator.py",
    ):
        self._python, self._folder, self._servers = python, folder, servers
        self._topics, self._commit_s, self._linger_ms = topics, commit_s, linger_ms
        self._script, self._processes = script, []

    def start(self):
        """Start the last operator first, so that records go through all of them."""
        self._folder.mkdir(parents=True, exist_ok=True)
        Cluster(self._servers).ensure(self._topics, 1)
        for reads, writes in reversed(list(pairwise(self._topics))):
            self._start(reads, writes)
            await_members(self._servers, reads, check=self.family)

    def _start(self, reads, writes):
        asked = {
            "servers": self._servers,
            "group": reads,
            "reads": reads,
            "writes": writes,
            "commit_s": self._commit_s,
            "linger_ms": self._linger_ms,
            "state": str(self._folder / f"state-{reads}"),
        }
        with (self._folder / f"{reads}.log").open("w") as log:
            process = subprocess.Popen(
                [self._python, "-I", _HERE / self._script, json.dumps(asked)],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                cwd=self._folder,
            )
        self._processes.append(process)

    def family(self):
        """Return all processes of the chain. Raise `SystemExit` if one has ended."""
        for process in self._processes:
            if process.poll() is not None:
                said = "".join(path.read_text()[-2000:] for path in self._folder.glob("*.log"))
                raise SystemExit(f"an operator ended with {process.returncode}:\n{said}")
        found = [psutil.Process(process.pid) for process in self._processes]
        return [each for whole in found for each in (whole, *whole.children(recursive=True))]

    def stop(self):
        """End all processes; kill those that take too long."""
        for process in self._processes:
            with suppress(OSError):  # it may be gone
                process.stdin.close()
        for process in self._processes:
            try:
                process.wait(_ENDS_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._processes.clear()

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()

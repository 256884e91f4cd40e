"""An engine whose simulated time passes as its commands run: a stand-in for Spark in tests.

`python -m live_engine '{"drain_s": 1}' run …` is the command line with it in place of Spark.
"""

import json
import sys
import threading
import time
from dataclasses import dataclass, field

from sojourn import cli
from sojourn.errors import ApplicationStopped, EngineError
from sojourn.service import run as service_run
from sojourn.simulate.simulator import Simulator


@dataclass(frozen=True, kw_only=True)
class Health:
    restarts: dict = field(default_factory=dict)
    replayed: int = 0
    retried: int = 0
    dead_letters: int = 0
    running: dict = field(default_factory=dict)
    unkept: str = ""
    failure: str = ""
    no_broker_s: float | None = None
    notices: tuple = ()
    held_records: int = 0
    held_bytes: int | None = None


class LiveSimulator:
    """The simulator, *look_s* of real time for each look, and changed by any thread.

    It stops by itself at *stops_at_s*; observing raises what *raises* returns, if anything.
    """

    servers, client_properties = "127.0.0.1:9092", None
    clients = {"bootstrap.servers": servers}  # noqa: RUF012 - nobody changes it

    def __init__(self, *, look_s=0.01, drain_s=0.0, stops_at_s=float("inf"), raises=None):
        self._simulator, self._lock = Simulator(sample_every=1), threading.Lock()
        self._look_s, self._drain_s, self._stops_at_s = look_s, drain_s, stops_at_s
        self._raises = raises or (lambda _now_s: None)
        self.drained = self.stopped = False
        self.failure = ""

    @property
    def now_s(self):
        return self._simulator.now_s

    @property
    def nodes(self):
        return self._simulator.nodes

    @property
    def plan(self):
        return self._simulator.plan

    def start(self, topology, plan):
        self._simulator.start(topology, plan)

    def observe(self, until_s):
        time.sleep(self._look_s)
        if until_s > self._stops_at_s:
            self.failure = "split: a record failed: ValueError: seven"
            raise ApplicationStopped(self.failure)
        if (error := self._raises(self.now_s)) is not None:
            raise error
        with self._lock:
            return self._simulator.observe(until_s)

    def apply(self, plan):
        with self._lock:
            return self._simulator.apply(plan)

    def health(self):
        return Health(
            restarts={"extract": 2}, dead_letters=3, running=self.plan.allocation,
            failure=self.failure,
        )  # fmt: skip

    def uncommitted(self):
        return 7

    def drain(self, progress):
        if self._drain_s < 0:
            raise EngineError("extract: the batch did not end; stop it now")
        progress("waiting for the batch of extract to end")
        until_s = time.monotonic() + self._drain_s
        while time.monotonic() < until_s:
            time.sleep(0.01)
        self.drained = True
        progress("drained")

    def stop(self):
        self.stopped = True

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        self.stop()


def main():
    options = json.loads(sys.argv.pop(1))
    service_run.spark_engine = lambda *_told: LiveSimulator(**options)
    cli.main()


if __name__ == "__main__":
    main()

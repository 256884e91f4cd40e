"""The simulator in place of Spark, for tests of what Spark may do: fail, refuse, take long.

`launch` makes it where the command line asks for an engine. What goes right needs none of
this: `sojourn.simulate.real_time` is an engine for tests as it is.
"""

import time

from sojourn.engine import Health, InnerTopics, KafkaAccess
from sojourn.errors import ApplicationStopped, EngineError
from sojourn.simulate.real_time import InstantClock, RealTimeSimulator


class LiveSimulator(RealTimeSimulator):
    """Says of itself what Spark could, and simulates as fast as it is looked at.

    It stops by itself at *stops_at_s*; observing raises what *raises* returns, if anything.
    """

    name = "Spark"
    client_properties: str | None = None
    client_settings: str | None = None

    def __init__(
        self, settings=None, *, drain_s=0.0, stops_at_s=float("inf"), raises=None, **told
    ):
        super().__init__(settings, **({"clock": InstantClock()} | told))
        self._drain_s, self._stops_at_s = drain_s, stops_at_s
        self._raises = raises or (lambda _now_s: None)
        self.started = self.drained = self.stopped = False
        self.failure = ""

    def start(self, topology, plan):
        self.started = True
        super().start(topology, plan)

    def observe(self, until_s):
        if until_s > self._stops_at_s:
            self.failure = "split: a record failed: ValueError: seven"
            raise ApplicationStopped(self.failure)
        if (error := self._raises(self.now_s)) is not None:
            raise error
        return super().observe(until_s)

    def health(self):
        return Health(
            restarts={"extract": 2}, dead_letters=3, running=self.plan.allocation,
            failure=self.failure, inner_topics=InnerTopics(records=0),
        )  # fmt: skip

    def kafka(self):
        servers = "127.0.0.1:9092"
        return KafkaAccess(
            servers=servers,
            clients={"bootstrap.servers": servers},
            client_properties=self.client_properties,
            client_settings=self.client_settings,
            sources={"frames": "vld.frames"},
            sinks={"seen": "vld.aggregate"},
        )

    def uncommitted(self):
        return 7

    def drain(self, progress):
        if self._drain_s < 0:
            raise EngineError("extract: the batch did not end in time; stop without draining")
        progress("waiting for the batch of extract to end")
        time.sleep(self._drain_s)
        self.drained = True
        progress("drained")

    def stop(self):
        self.stopped = True
        super().stop()


class Launches:
    """Makes engines with *options*, and keeps those that it *made* with what it was told."""

    def __init__(self):
        self.options, self.made = {}, []

    def __call__(self, app, address, settings, state, _progress):
        self.made.append((LiveSimulator(**self.options), (app, address, settings, state)))
        return self.made[-1][0]

    def of(self, number):
        """Return an engine that was made."""
        return self.made[number][0]


launch = Launches()

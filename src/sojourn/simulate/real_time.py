"""The simulator as a running application, in wall-clock time."""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Protocol, Self

from sojourn.decide.plan import Node, Plan
from sojourn.engine import Cost, Health, NodeNeeds, Progress
from sojourn.errors import EngineError
from sojourn.measure.report import Pull
from sojourn.simulate.settings import SimulatorSettings
from sojourn.simulate.simulator import Simulator
from sojourn.topology import Topology

__all__ = ["Clock", "InstantClock", "RealTimeSimulator", "WallClock"]

_LOOK_S = 0.1


def _nothing() -> None:
    """Do nothing when nodes change."""


class Clock(Protocol):
    """A clock that can be waited for."""

    def now_s(self) -> float:
        """Return what it shows, in seconds since any moment."""
        ...

    def wait_until(self, at_s: float) -> None:
        """Return when it shows *at_s*, or later."""
        ...


class WallClock:
    """The time as it passes."""

    def now_s(self) -> float:
        """Return the seconds since some moment."""
        return time.monotonic()

    def wait_until(self, at_s: float) -> None:
        """Sleep until then."""
        time.sleep(max(0.0, at_s - time.monotonic()))


class InstantClock:
    """A time that passes only while it is waited for, and then at once: for tests."""

    def __init__(self) -> None:
        self._now_s = 0.0

    def now_s(self) -> float:
        """Return the seconds that were waited for."""
        return self._now_s

    def wait_until(self, at_s: float) -> None:
        """Let it be then."""
        self._now_s = max(self._now_s, at_s)


class RealTimeSimulator:
    """Simulates an application in the time of *clock*: a look waits until its end.

    Changes take effect at once.
    """

    name = "the simulator"

    def __init__(
        self,
        settings: SimulatorSettings | None = None,
        *,
        clock: Clock | None = None,
    ) -> None:
        told = settings or SimulatorSettings()
        self._simulator = Simulator(
            workload=told.workload,
            seed=told.seed,
            pause_s=told.pause_s,
            sample_every=told.sample_every,
            nodes=told.nodes,
        )
        self._simulator.on_nodes_changed(self._note_nodes)
        self._changed, self._has_changed = _nothing, False
        self._clock = clock or WallClock()
        self._lock = threading.Lock()
        self._began_s: float | None = None
        self._until_s: float | None = None

    @property
    def now_s(self) -> float:
        """The time since it was started."""
        return 0.0 if self._began_s is None else self._clock.now_s() - self._began_s

    @property
    def nodes(self) -> Sequence[Node]:
        """The simulated nodes, or the one machine there is."""
        return self._simulator.nodes

    @property
    def plan(self) -> Plan:
        """What was started with, or applied last."""
        return self._simulator.plan

    def start(self, topology: Topology, plan: Plan) -> None:
        """Begin now."""
        self._simulator.start(topology, plan)
        self._simulator.advance(0.0)  # which compiles it, and takes its time
        self._began_s = self._clock.now_s()

    def observe(self, until_s: float) -> Pull:
        """Wait until then, and return what was counted."""
        if self._began_s is not None and not until_s > self.now_s:
            raise EngineError(f"{until_s} s is not after {self.now_s:.3f} s, the current time")
        with self._lock:
            self._simulator.look_until(until_s)
            self._until_s = until_s
        try:
            self._pass_until(until_s)
        finally:
            self._until_s = None
        with self._lock:
            pull = self._simulator.pull()
        self._tell_nodes()
        return pull

    def apply(self, plan: Plan) -> Cost:
        """Change processors now, also while another thread looks."""
        with self._lock:
            if (until_s := self._until_s) is not None:
                self._simulator.advance(min(self.now_s, until_s))
            return self._simulator.apply(plan)

    def stop(self) -> None:
        """Forget the run."""
        with self._lock:
            self._simulator.stop()
            self._began_s = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.stop()

    def drain(self, progress: Progress) -> None:
        """Admit no more records, and wait until all that have entered are complete."""
        with self._lock:
            self._simulator.advance(self.now_s)
            self._simulator.close()
        if left := self._simulator.in_flight:
            progress(f"waiting for {left} roots in flight")
        while self._simulator.in_flight:
            self._wait_until(self.now_s + _LOOK_S)
            with self._lock:
                self._simulator.advance(self.now_s)
        progress("drained")

    def uncommitted(self) -> int:
        """Return 0: simulated records are not repeated."""
        return 0

    def health(self) -> Health:
        """Return the health, with the number of processors; nothing fails by itself."""
        with self._lock:
            running = {} if self._began_s is None else self._simulator.running()
            node_s, costs = self._simulator.node_s, self._simulator.node_costs
        return Health(running=running, node_s=node_s, node_costs=costs)

    def node_needs(self) -> NodeNeeds:
        """Return what the simulator needs of nodes."""
        return self._simulator.node_needs()

    def on_nodes_changed(self, changed: Callable[[], None]) -> None:
        """Call *changed* during a look, in its thread, when a node has come or gone."""
        self._changed = changed

    def _pass_until(self, until_s: float) -> None:
        """Wait until then; nodes come and go meanwhile, also those asked for meanwhile."""
        while (now_s := self.now_s) < until_s and self._simulator.has_nodes:
            self._wait_until(min(until_s, now_s + _LOOK_S))
            with self._lock:
                self._simulator.advance(min(until_s, self.now_s))
            self._tell_nodes()
        self._wait_until(until_s)

    def _note_nodes(self) -> None:
        self._has_changed = True

    def _tell_nodes(self) -> None:
        """Report changes without the lock: the answer is a plan, from any thread."""
        if self._has_changed:
            self._has_changed = False
            self._changed()

    def _wait_until(self, at_s: float) -> None:
        if self._began_s is not None:
            self._clock.wait_until(self._began_s + at_s)

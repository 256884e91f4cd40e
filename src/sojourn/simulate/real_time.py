"""The simulator as a running application in wall-clock time."""

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

from sojourn.app.application import App
from sojourn.decide.plan import Node, Plan
from sojourn.engine import Cost, Health, NodeNeeds, Progress
from sojourn.errors import EngineError
from sojourn.measure.report import Pull
from sojourn.simulate.simulator import Simulator
from sojourn.simulate.workload import SimulatorSettings
from sojourn.topology import Topology

_LOOK_S = 0.1


class WallClock:
    """The monotonic clock of the operating system, with a wait."""

    def now_s(self) -> float:
        return time.monotonic()

    def wait_until(self, at_s: float) -> None:
        time.sleep(max(0.0, at_s - time.monotonic()))


class InstantClock:
    """A clock for tests: time advances only in a wait, and every wait ends immediately."""

    def __init__(self) -> None:
        self._now_s = 0.0

    def now_s(self) -> float:
        return self._now_s

    def wait_until(self, at_s: float) -> None:
        self._now_s = max(self._now_s, at_s)


class RealTimeSimulator:
    """An engine that simulates an application in the time of a clock.

    An observation blocks until its end. Changes take effect immediately, even during one.
    """

    name = "the simulator"

    def __init__(
        self,
        settings: SimulatorSettings | None = None,
        *,
        clock: WallClock | InstantClock | None = None,
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
        self._changed: Callable[[], None] = lambda: None
        self._has_changed = False
        self._clock = clock or WallClock()
        self._lock = threading.Lock()
        self._began_s: float | None = None
        self._until_s: float | None = None

    @property
    def now_s(self) -> float:
        return 0.0 if self._began_s is None else self._clock.now_s() - self._began_s

    @property
    def nodes(self) -> Sequence[Node]:
        return self._simulator.nodes

    @property
    def plan(self) -> Plan:
        return self._simulator.plan

    def start(self, topology: Topology, plan: Plan) -> None:
        """Start the simulation, and then its clock."""
        self._simulator.start(topology, plan)
        self._simulator.advance(0.0)  # compiles the event loop, which takes seconds
        self._began_s = self._clock.now_s()

    def observe(self, until_s: float) -> Pull:
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
        """Change processors now, also while another thread observes."""
        with self._lock:
            if (until_s := self._until_s) is not None:
                self._simulator.advance(min(self.now_s, until_s))
            return self._simulator.apply(plan)

    def stop(self) -> None:
        with self._lock:
            self._simulator.stop()
            self._began_s = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.stop()

    def drain(self, progress: Progress) -> None:
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
        """Return 0, because simulated records are never replayed."""
        return 0

    def health(self) -> Health:
        """Return running processors and costs of nodes; the simulator has no failures."""
        with self._lock:
            running = {} if self._began_s is None else self._simulator.running()
            node_s, costs = self._simulator.node_s, self._simulator.node_costs
        return Health(running=running, node_s=node_s, node_costs=costs)

    def node_needs(self) -> NodeNeeds:
        return self._simulator.node_needs()

    def on_nodes_changed(self, changed: Callable[[], None]) -> None:
        """Call *changed* when nodes were added or removed, in the thread that observes."""
        self._changed = changed

    def _pass_until(self, until_s: float) -> None:
        """Wait until *until_s*, and let nodes be added and removed meanwhile.

        Poll, because a plan may request nodes during the wait.
        """
        while (now_s := self.now_s) < until_s and self._simulator.has_nodes:
            self._wait_until(min(until_s, now_s + _LOOK_S))
            with self._lock:
                self._simulator.advance(min(until_s, self.now_s))
            self._tell_nodes()
        self._wait_until(until_s)

    def _note_nodes(self) -> None:
        self._has_changed = True

    def _tell_nodes(self) -> None:
        """Report a change of nodes without the lock, because the callback may apply a plan."""
        if self._has_changed:
            self._has_changed = False
            self._changed()

    def _wait_until(self, at_s: float) -> None:
        if self._began_s is not None:
            self._clock.wait_until(self._began_s + at_s)


def launch(
    app: App,  # noqa: ARG001 - only the topology is simulated, which `start` receives
    address: str,  # noqa: ARG001
    settings: SimulatorSettings | None = None,
    state: Path | None = None,  # noqa: ARG001 - nothing is kept
    progress: Progress = lambda _line: None,  # noqa: ARG001 - starting takes no time
) -> RealTimeSimulator:
    """Return the engine for `sojourn run --engine simulator`, which is not started yet."""
    return RealTimeSimulator(settings)

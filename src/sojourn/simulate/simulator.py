"""The simulator as an engine, which the loop controls like a running application."""

from collections.abc import Callable, Sequence
from math import ceil, inf
from typing import Self

import numpy as np
from numpy.typing import NDArray

from sojourn.decide.plan import HERE, Node, Plan
from sojourn.engine import Cost, NodeNeeds, check_plan
from sojourn.errors import EngineError
from sojourn.measure.aggregate import LEAST_BINS
from sojourn.measure.births import RootTimes
from sojourn.measure.counters import OperatorReport, ProcessorReport
from sojourn.measure.node_costs import NodeCosts
from sojourn.measure.report import Pull, RootReport
from sojourn.measure.sketch import Sketch
from sojourn.model.cores import all_cores
from sojourn.simulate.draws import ABSENT
from sojourn.simulate.nodes import NodeSettings, SimulatedNodes
from sojourn.simulate.simulation import COUNTERS, Simulation
from sojourn.simulate.starting import Starting
from sojourn.simulate.workload import Workload
from sojourn.topology import Topology

# Prevents an additional bin due to rounding.
_ROUNDING = 1e-9


class Simulator:
    """An engine whose time advances only during an observation.

    - *pause_s*: pause of each operator that a plan changes, for example 0 for an engine that
      rescales live, 7 s for one that restarts a query
    - *adding_pause_s*: the same for plans with more processors, if it differs
    - *starts_s*: time until a processor that is added can take records
    - *sample_every*: one record in this many is timed
    - *each*: callback for completed roots, with an array of births, completions and sums that
      is valid only during the call
    - *nodes*: nodes that plans can request and release; without it there is a single machine
    """

    name = "the simulator"

    def __init__(  # noqa: PLR0913 - optional settings by name, with defaults
        self,
        *,
        workload: Workload | None = None,
        seed: int = 1,
        pause_s: float = 0.0,
        adding_pause_s: float | None = None,
        starts_s: float = 0.0,
        sample_every: int = 20,
        bin_s: float = 1.0,
        each: Callable[[NDArray[np.void]], None] = lambda _roots: None,
        nodes: NodeSettings | None = None,
    ) -> None:
        self._workload, self._seed = workload or Workload(), seed
        self._pause_s, self._sample_every, self._bin_s = pause_s, sample_every, bin_s
        self._adding_pause_s = pause_s if adding_pause_s is None else adding_pause_s
        self._starts_s, self._each, self._node_settings = starts_s, each, nodes
        self._nodes: SimulatedNodes | None = None
        self._nodes_changed: Callable[[], None] = lambda: None
        self._run: Simulation | None = None
        self._plan = Plan(placement={})
        self._starting = Starting({}, delay_s=starts_s)
        self._since_s = self._until_s = self._bin_width_s = 0.0
        self._entered = self._done = 0
        self._completions = self._sums = Sketch.empty()
        self._completed = list[NDArray[np.void]]()

    @property
    def now_s(self) -> float:
        return 0.0 if self._run is None else self._run.now_s

    @property
    def nodes(self) -> Sequence[Node]:
        """The simulated nodes, or a single machine with the cores of the topology."""
        if self._nodes is not None:
            return self._nodes.there
        return (Node(HERE, None if self._run is None else all_cores(self._run.topology)),)

    @property
    def plan(self) -> Plan:
        return self._plan

    def start(self, topology: Topology, plan: Plan) -> None:
        if self._run is not None:
            raise EngineError(f"{topology.name} is already running; stop it first")
        check_plan(plan, topology, self.nodes)
        self._plan = plan
        self._run = Simulation(
            topology,
            plan.allocation,
            workload=self._workload,
            seed=self._seed,
            sample_every=self._sample_every,
        )
        self._starting = Starting(plan.allocation, delay_s=self._starts_s)
        self._since_s, self._entered, self._done = 0.0, 0, 0
        if self._node_settings is not None:
            self._nodes = SimulatedNodes(self._node_settings)
            self._nodes.request(plan.nodes, 0.0)

    def observe(self, until_s: float) -> Pull:
        self.look_until(until_s)
        return self.pull()

    def look_until(self, until_s: float) -> None:
        """Begin an observation that ends at *until_s*; `advance` simulates parts of it."""
        run = self._running()
        if not until_s > run.now_s:
            raise EngineError(f"{until_s} s is not after {run.now_s} s, the current time")
        self._until_s = until_s
        self._bin_width_s = min(self._bin_s, (until_s - run.now_s) / LEAST_BINS)
        bins = ceil((until_s - run.now_s) / self._bin_width_s - _ROUNDING)
        run.watch(bin_s=self._bin_width_s, bins=bins)
        self._completions = self._sums = Sketch.empty()
        self._completed = []

    def advance(self, until_s: float) -> None:
        """Simulate until *until_s*, and report each change of nodes at its time."""
        while (at_s := min(self.nodes_change_s, self._starting.next_s)) <= until_s:
            self._pass(at_s)
            self._running().resize(self._starting.due(at_s))
            if self._nodes is not None and self._nodes.advance(at_s):
                self._nodes_changed()
        self._pass(until_s)

    def _pass(self, until_s: float) -> None:
        run = self._running()
        if until_s < run.now_s:
            return
        for done in run.advance(until_s=until_s):
            self._completions += Sketch.of(done["completion_s"])
            self._sums += Sketch.of(done["sum_s"])
            self._completed.append(done.copy())
            self._each(done)

    def pull(self) -> Pull:
        """Simulate until the end of the observation, and return its counters."""
        self.advance(self._until_s)
        run = self._running()
        entered, completed = run.roots_entered, run.roots_done
        pull = Pull(
            since_s=self._since_s,
            at_s=self._until_s,
            operators=tuple(self._operator(name) for name in run.topology.operator),
            roots=RootReport(
                entered=entered - self._entered,
                completed=completed - self._done,
                completions=self._completions,
                sums=self._sums,
                times=self._times(),
            ),
            node_costs=self.node_costs,
        )
        self._since_s, self._entered, self._done = self._until_s, entered, completed
        return pull

    def apply(self, plan: Plan) -> Cost:
        """Change processors now, and pause operators that change. Nodes follow later."""
        run = self._running()
        check_plan(plan, run.topology, self.nodes)
        changed = self._plan.changes(plan)
        more = plan.processors > self._plan.processors
        pause_s = self._adding_pause_s if more else self._pause_s
        wanted = {name: after for name, (_, after) in changed.items()}
        run.resize(self._starting.change(wanted, run.now_s), pause_s=pause_s)
        self._plan = plan
        if self._nodes is not None:
            self._nodes.request(plan.nodes, run.now_s)
        return Cost(pause_s=pause_s if changed else 0.0, changed=changed)

    def close(self) -> None:
        self._running().close()

    def node_needs(self) -> NodeNeeds:
        return NodeNeeds()

    def on_nodes_changed(self, changed: Callable[[], None]) -> None:
        """Call *changed* when a node is added or removed, at that simulated time."""
        self._nodes_changed = changed

    @property
    def has_nodes(self) -> bool:
        return self._nodes is not None

    @property
    def nodes_change_s(self) -> float:
        return inf if self._nodes is None else self._nodes.next_s

    @property
    def node_s(self) -> float | None:
        """The accumulated time of all nodes, in node seconds; None if nodes are fixed."""
        return None if self._nodes is None else self._nodes.node_s(self.now_s)

    @property
    def node_costs(self) -> NodeCosts:
        return NodeCosts() if self._nodes is None else self._nodes.costs

    def running(self) -> dict[str, int]:
        """Return the running processors, with busy ones that still have to leave."""
        run = self._running()
        return {name: _present(run.processors(name)) for name in run.topology.operator}

    @property
    def in_flight(self) -> int:
        """Roots that have entered and are not complete."""
        run = self._running()
        return run.roots_entered - run.roots_done

    def stop(self) -> None:
        self._run = self._nodes = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.stop()

    def _running(self) -> Simulation:
        if self._run is None:
            raise EngineError("nothing is running; call start() first")
        return self._run

    def _times(self) -> RootTimes:
        done, births_s = np.concatenate(self._completed), self._running().open_births_s
        return RootTimes(
            birth_s=done["birth_s"],
            completion_s=done["completion_s"],
            sum_s=done["sum_s"],
            weight=np.ones(len(done)),
            open_birth_s=births_s,
            open_weight=np.ones(len(births_s)),
        )

    def _operator(self, name: str) -> OperatorReport:
        run = self._running()
        slots = run.processors(name)
        return OperatorReport(
            name=name,
            wanted=self._plan.allocation[name],
            running=_present(slots),
            processors=tuple(
                ProcessorReport(
                    processor=f"{name}-{i}",
                    **{counter: slot[counter].item() for counter in COUNTERS},
                )
                for i, slot in enumerate(slots)
                if slot["state"] != ABSENT or slot["served"] > 0
            ),
            arrivals=tuple(run.arrivals(name).tolist()),
            bin_s=self._bin_width_s,
            backlog=run.waiting(name),
            hottest=run.hottest(name),
        )


def _present(slots: NDArray[np.void]) -> int:
    return int((slots["state"] != ABSENT).sum())

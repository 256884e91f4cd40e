"""Engines for experiments: Spark, on which applications run faster than in the papers.

Service times are divided by a factor, and the load is multiplied by it. Measurements are scaled
back, so that callers see the original times; only the overhead of the machine, some
milliseconds per record, appears longer by this factor.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar, Self

from sojourn.app.loading import load
from sojourn.decide.plan import Node, Plan
from sojourn.engine import Cost, Engine, HasNodes, NodeNeeds, kafka, node_needs
from sojourn.errors import EngineError
from sojourn.measure.report import Pull
from sojourn.service.engines import launcher
from sojourn.spark.driver.load.offered_load import Load
from sojourn.spark.driver.load.producer import LoadProcess
from sojourn.spark.driver.settings import SparkSettings
from sojourn.topology import Topology
from sojourn.topology.file import write_topology
from sojourn_papers.experiments.bench import Bench, Conditions, EngineFactory
from sojourn_papers.experiments.machine_changes import MachineChange
from sojourn_papers.experiments.pace import Pace
from sojourn_papers.experiments.sent_load import LEAD_S, Offered, sources
from sojourn_papers.experiments.time_scale import as_described, sped_up
from sojourn_papers.experiments.trial_machines import TrialMachines

# The first records are slow, as Java warms up. It is warm when no more records wait than there
# are processors; with too few processors this may never happen.
_WARM_S, _WARMEST_S = 2.0, 20.0
_LOOK_S, _LATE_S = 0.5, 0.05
_PATIENCE_S = 60.0
# Longer than any run: at the end of a batch an operator pauses for half a second.
_BATCH_S = 86400.0


def on_spark(
    faster: Mapping[str, float], looked: Callable[[], None] = lambda: None
) -> EngineFactory:
    """Return a factory of engines that run topologies *faster*, by their names.

    Each engine has a broker that no other run uses: random numbers depend on the names of
    topics. *looked* is called after each look.
    """
    return partial(_Faster, faster, looked)


def spark_bench(pace: Pace, seed: int, looked: Callable[[], None]) -> Bench:
    """Return the bench of an experiment at its *pace*, beside the simulator if it is there."""
    try:
        from sojourn_papers.experiments.on_simulator import alike  # noqa: PLC0415 - numba is optional
    except ImportError:
        beside = None
    else:
        beside = alike(pace.faster)
    return Bench(
        engine=on_spark(pace.faster, looked),
        seed=seed,
        minutes_s=pace.minutes_s,
        days=1,
        on=f"on Spark, {pace.said}",
        caveat=pace.caveat,
        beside=beside,
    )


@dataclass(slots=True)
class _Faster:
    """An engine whose clock runs faster; as in a simulation, it stops between two looks."""

    name: ClassVar[str] = "Spark"
    faster: Mapping[str, float]
    looked: Callable[[], None]
    conditions: Conditions
    _engine: Engine | None = None
    _machines: TrialMachines | None = None
    _stack: ExitStack = field(default_factory=ExitStack)
    _times: float = 1.0
    _zero_s: float = 0.0
    _now_s: float = 0.0

    @property
    def now_s(self) -> float:
        """The time of the last look, as the application counts."""
        return self._now_s

    @property
    def nodes(self) -> Sequence[Node]:
        """The machines of the engine that it drives; none before it is started."""
        return () if self._engine is None else self._engine.nodes

    @property
    def plan(self) -> Plan:
        """What was started with, or applied last."""
        return Plan(placement={}) if self._engine is None else self._engine.plan

    def start(self, topology: Topology, plan: Plan) -> None:
        """Start a stand-in for *topology* and its load; return when the clock starts."""
        if self._engine is not None:
            raise EngineError(f"{topology.name} is already running; stop it first")
        workload = self.conditions.workload
        workload.check(topology)
        self._times = self.faster.get(topology.name, 1.0)
        with ExitStack() as stack:
            folder = Path(stack.enter_context(TemporaryDirectory(prefix="sojourn-reproduce-")))
            running = sped_up(topology, self._times)
            address = folder / "topology.json"
            write_topology(running, address)
            app = load(str(address))
            offered = tuple(sources(app, topology, workload, self._times))
            self._machines = self._pool(stack, plan)
            settings = (
                SparkSettings(batch_s=_BATCH_S)
                if self._machines is None
                else self._machines.settings
            )
            launch, state = launcher("spark"), folder / "state"
            made = launch(app, str(address), settings, state, lambda _line: None)
            engine = stack.enter_context(made)
            engine.start(running, plan)
            if self._machines is not None:
                stack.enter_context(self._machines.following(engine))
            access, seed = kafka(engine), self.conditions.seed
            clients = dict(access.clients)
            offer = Offered(
                Load(servers=access.servers, sources=offered, seed=seed, kafka=clients)
            )
            first_s = offer.first_s
            _warm_up(engine, offer)
            before = offer.ends()
            stack.enter_context(LoadProcess(offer.load))
            began_s = engine.now_s - offer.age_s(before) - first_s
            self._zero_s = began_s + LEAD_S
            engine.observe(max(self._zero_s, engine.now_s + _LATE_S))
            self._engine, self._stack = engine, stack.pop_all()
        self._now_s = 0.0

    @property
    def machine_changes(self) -> tuple[MachineChange, ...] | None:
        """The machines that were added and removed; None on one machine."""
        if self._machines is None:
            return None
        return tuple(
            replace(change, at_s=self._times * (change.at_s - self._zero_s))
            for change in self._machines.changes
        )

    def observe(self, until_s: float) -> Pull:
        """Wait until then, and return the counters at the original pace."""
        engine = self._running()
        # if late, look at once to catch up: the load does not wait
        wanted_s = self._zero_s + until_s / self._times
        pull = engine.observe(max(wanted_s, engine.now_s + _LATE_S))
        self._now_s = until_s
        self.looked()
        return as_described(pull, self._times, self._zero_s)

    def apply(self, plan: Plan) -> Cost:
        """Change processors now. Nothing pauses, whatever the conditions."""
        return self._running().apply(plan)

    def node_needs(self) -> NodeNeeds:
        """Return what the engine that it drives needs of nodes."""
        return NodeNeeds() if self._engine is None else node_needs(self._engine)

    def on_nodes_changed(self, changed: Callable[[], None]) -> None:
        """Call *changed* after each change of nodes."""
        if isinstance(self._engine, HasNodes):
            self._engine.on_nodes_changed(changed)

    def stop(self) -> None:
        """Stop the load and the application."""
        self._engine = self._machines = None
        self._stack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.stop()

    def _pool(self, stack: ExitStack, plan: Plan) -> TrialMachines | None:
        """Return the machines that the conditions ask for, started with those for *plan*."""
        if (pool := self.conditions.pool) is None:
            return None
        return stack.enter_context(TrialMachines(pool.bounds, plan.processors))

    def _running(self) -> Engine:
        if self._engine is None:
            raise EngineError("nothing is running; call start() first")
        return self._engine


def _warm_up(engine: Engine, offer: Offered) -> None:
    """Send records until they flow, and wait until none is left."""
    until_s = engine.now_s + _WARMEST_S
    with LoadProcess(offer.steady):
        while engine.now_s < until_s:
            pull = engine.observe(engine.now_s + _WARM_S)
            if _served(pull) > 0 and _waiting(pull) <= engine.plan.processors:
                break
    until_s = engine.now_s + _PATIENCE_S
    while _served(pull) or _waiting(pull):
        if engine.now_s > until_s:
            raise EngineError(
                f"records still wait after {_PATIENCE_S:g} s without new ones; lower --faster"
            )
        pull = engine.observe(engine.now_s + _LOOK_S)


def _served(pull: Pull) -> int:
    return sum(p.served for report in pull.operators for p in report.processors)


def _waiting(pull: Pull) -> int:
    return sum(report.backlog for report in pull.operators)

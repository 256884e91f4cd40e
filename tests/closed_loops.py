"""Closed loops drawn at random: a topology, a load, faults in what is measured, a policy.

A run is a function of its seed. It says what must never happen: an unstable allocation that
is kept, or processors that go up and down again on a steady load.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import inf, nan, sqrt

import numpy as np

from sojourn.act.best_effort_plan import Goal, aim
from sojourn.act.policy.drs import Drs
from sojourn.act.policy.drs.caution import Caution
from sojourn.decide.plan import Plan
from sojourn.decide.target import Target
from sojourn.engine import Engine
from sojourn.errors import EngineError
from sojourn.knowledge import Episode
from sojourn.loop import Loop
from sojourn.model.network import predict
from sojourn.simulate.simulator import Simulator
from sojourn.simulate.workload import Gaps, Rates, Service, Workload
from sojourn.topology import Arrival, Operator, Topology
from sojourn.topology.load import StationLoad
from sojourn.topology.traffic import rates

__all__ = ["Run", "play"]

EVERY_S, T_RA_S, LASTS_S = 10.0, 30.0, 900.0
MOST_UNSTABLE, CALM, BEYOND = 3, 10, 3.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What happened in one closed loop."""

    seed: int
    topology: Topology
    policy: Drs
    load: Rates
    steady: bool
    episodes: list[Episode]

    def kept_unstable(self) -> Iterator[str]:
        """Yield where an unstable allocation was kept though processors were free."""
        row = 0
        for episode in self.episodes:
            if not episode.observation.usable:
                continue
            # what ran while it was observed, and the load all the time that it was
            since_s, at_s = episode.observation.since_s, episode.observation.at_s
            per_s = min(self.load.at(t) for t in np.linspace(since_s, at_s - 1e-6, 5))
            loads = self.topology.scaled(per_s / self.topology.arrivals_per_s).loads
            full = [
                name
                for name, k in episode.decision.before.allocation.items()
                if k * (1 + _unseen(loads[name])) < loads[name].erlangs
                and k < (self.topology.operator[name].max_processors or inf)
            ]
            free = episode.decision.before.processors < (self.policy.goal.most or inf)
            row = row + 1 if full and free else 0
            if row > MOST_UNSTABLE:
                yield f"seed {self.seed}: {full} at {at_s} s: {episode.decision.reason}"

    def _beyond_noise(self, episode: Episode) -> bool:
        per_s = self.load.at(0.0)
        more = abs(episode.observation.arrivals_per_s - per_s)
        return episode.observation.usable and more > BEYOND * _noise_per_s(per_s)

    def flapped(self) -> Iterator[str]:
        """Yield where processors went up and down again, or back, on a steady load.

        That is, while what arrived stayed within its noise: an interval with so many more
        that it is no chance, but for one in thousands, is another load as far as anybody
        can see.
        """
        if not self.steady:
            return
        last: dict[str, tuple[float, int]] = {}
        for episode in self.episodes:
            if self._beyond_noise(episode):
                last.clear()
                continue
            for name, (before, after) in (episode.cost.changed if episode.cost else {}).items():
                at_s, way = episode.decision.at_s, 1 if after > before else -1
                if name in last:
                    then_s, then = last[name]
                    if then != way and at_s - then_s <= CALM * T_RA_S:
                        reason = episode.decision.reason
                        yield f"seed {self.seed}: {name} at {then_s} s and {at_s} s: {reason}"
                last[name] = at_s, way


def _noise_per_s(per_s: float) -> float:
    """Return the standard error of a rate counted in one interval."""
    return sqrt(per_s / EVERY_S)


def _unseen(load: StationLoad) -> float:
    """Return the part of a load by which chance may hide it from three observations."""
    counted = MOST_UNSTABLE * EVERY_S * max(load.arrivals_per_s, 1e-9)
    return 3 * sqrt((load.arrival_scv + load.service_scv) / counted)


def play(seed: int) -> Run:
    """Return the run of *seed*."""
    rng = np.random.default_rng(seed)
    topology = _topology(rng)
    steady = bool(rng.random() < 0.5)
    load = _load(rng, topology.arrivals_per_s, steady=steady)
    policy = _policy(rng, topology)
    workload = Workload(
        rates={"in": load},
        gaps={"in": Gaps(shape="renewal") if rng.random() < 0.7 else Gaps(shape="uniform")},
        service={
            name: Service(shape="auto" if rng.random() < 0.7 else "lognormal")
            for name in topology.operator
        },
        spread=bool(rng.random() < 0.3),
    )
    simulator = Simulator(
        workload=workload,
        seed=seed,
        sample_every=int(rng.choice([1, 5, 20])),
        pause_s=float(rng.choice([0.0, 0.0, 1.0])),
    )
    faults = float(rng.choice([0.0, 0.05, 0.2]))
    engine = Faulty(simulator, np.random.default_rng(seed + 1_000_000), faults)
    episodes = []
    with simulator:
        start = topology.scaled(load.at(0.0) / topology.arrivals_per_s)
        simulator.start(topology, Plan.here(aim(start, policy.goal).allocation))
        loop = Loop(engine, topology, policy, every_s=EVERY_S)
        # what was last measured is not what was declared: the guess may be far off
        episodes = list(loop.run(LASTS_S))
    return Run(
        seed=seed,
        topology=topology,
        policy=policy,
        load=load,
        steady=steady,
        episodes=episodes,
    )


def _topology(rng: np.random.Generator) -> Topology:
    names = "abcde"[: rng.integers(1, 6)]
    per_s = float(10 ** rng.uniform(0.3, 2.0))
    emits: dict[str, dict[str, float]] = {name: {} for name in names}
    for i, name in enumerate(names[:-1]):
        for target in sorted({names[i + 1], str(rng.choice(list(names[i + 1 :])))}):
            emits[name][target] = float(rng.choice([0.3, 0.7, 1.0, 1.0, 2.0]))
    if len(names) > 1 and rng.random() < 0.3:
        back = str(rng.choice(list(names)))
        emits[names[-1]][back] = emits[names[-1]].get(back, 0.0)
        emits = _calmed(emits, names[-1], back)
    reaching = rates({names[0]: per_s}, emits)
    return Topology(
        name="drawn",
        arrivals=(Arrival(name="in", per_s=per_s, into=names[0]),),
        operators=tuple(
            Operator(
                name=name,
                service_s=float(rng.uniform(0.2, 6.0)) / reaching[name],
                service_scv=float(rng.choice([0.0, 0.3, 1.0, 1.0, 2.0])),
                emits=emits[name],
                min_processors=int(rng.choice([1, 1, 1, 2])),
            )
            for name in names
        ),
    )


def _calmed(
    emits: dict[str, dict[str, float]], last: str, back: str
) -> dict[str, dict[str, float]]:
    """Send so much back that the loop has a gain of about a third."""
    passed = rates({back: 1.0}, {**emits, last: {}})[last] if back != last else 1.0
    emits[last][back] = 0.3 / passed
    return emits


def _load(rng: np.random.Generator, per_s: float, *, steady: bool) -> Rates:
    if steady:
        return Rates.steps((0, per_s))
    shape = rng.choice(["up", "down", "up and down", "ramp", "walk"])
    factor = float(rng.uniform(1.3, 4.0))
    if shape == "up":
        return Rates.steps((0, per_s), (300, per_s * factor))
    if shape == "down":
        return Rates.steps((0, per_s), (300, per_s / factor))
    if shape == "up and down":
        return Rates.steps((0, per_s), (250, per_s * factor), (500, per_s))
    if shape == "ramp":
        return Rates(((0.0, per_s), (200.0, per_s), (600.0, per_s * factor), (700.0, per_s)))
    walk = per_s * np.exp(np.cumsum(rng.normal(0, 0.15, 30)))
    return Rates.steps(*((30.0 * i, float(rate)) for i, rate in enumerate(walk)))


def _policy(rng: np.random.Generator, topology: Topology) -> Drs:
    plenty = {name: load.min_processors + 60 for name, load in topology.loads.items()}
    floor = predict(topology, plenty)
    slack = float(rng.uniform(1.1, 2.5))
    if rng.random() < 0.3 and not topology.looped:  # there a plan takes half a second
        target = Target("p95", floor.percentiles_s["p95"] * slack)
    else:
        target = Target("mean", floor.mean_s * slack)
    most = None
    if rng.random() < 0.4:
        needed = sum(aim(topology, Goal(target=target)).allocation.values())
        most = max(len(topology.operators) * 2, int(needed * rng.uniform(0.8, 3.0)))
    fixed = rng.random() < 0.15
    if fixed:
        most = sum(load.min_processors for load in topology.loads.values()) + int(
            rng.integers(1, 10)
        )
    return Drs(
        goal=Goal(target=None if fixed else target, most=most),
        caution=Caution(t_ra_s=T_RA_S),
        drain_s=float(rng.choice([30.0, 60.0])),
        forecast=bool(rng.random() < 0.2),
    )


class Faulty:
    """An engine whose reports are wrong now and then; what it runs is not touched."""

    def __init__(self, engine: Engine, rng: np.random.Generator, often: float) -> None:
        self._engine, self._rng, self._often = engine, rng, often
        self._failed = False

    def __getattr__(self, name):
        return getattr(self._engine, name)

    def observe(self, until_s):
        pull = self._engine.observe(until_s)
        if self._rng.random() >= self._often:
            return pull
        return FAULTS[self._rng.integers(len(FAULTS))](pull)


def _silent(_pull):
    raise EngineError("no answer in time")


def _jumped(pull):
    return replace(pull, at_s=pull.at_s - 1e6, since_s=pull.since_s - 1e6)


def _lost(pull):
    first, *others = pull.operators
    kept = first.processors[: len(first.processors) // 2]
    return replace(pull, operators=(replace(first, processors=kept), *others))


def _first(**changes):
    """Return what spoils the report of the first processor."""

    def spoil(pull):
        first, *others = pull.operators
        return replace(pull, operators=(_spoilt(first, **changes), *others))

    return spoil


FAULTS = (
    _silent,
    _jumped,
    _lost,
    _first(service_s=nan),
    _first(served=-5),
    _first(service_s=1e6, service_ss=1e12),
    lambda pull: replace(pull, operators=pull.operators[1:]),
    lambda pull: replace(pull, operators=(pull.operators[0], *pull.operators)),
    lambda pull: replace(pull, roots=replace(pull.roots, entered=-1)),
)


def _spoilt(report, **changes):
    if not report.processors:
        return report
    first, *others = report.processors
    return replace(report, processors=(replace(first, **changes), *others))

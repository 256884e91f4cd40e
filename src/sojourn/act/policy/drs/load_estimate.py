"""The current load, its uncertainty, backlogs, and the prediction of the model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, sqrt

from sojourn.act.best_effort_plan import Goal
from sojourn.act.latency import Outlook, floor_s, lowest_s, outlook
from sojourn.act.policy.drs.backlog import behind, drain_needs, falling_behind
from sojourn.knowledge import STARTS_S, Knowledge, measured_s
from sojourn.measure.observation import Observation
from sojourn.measure.observed import LEAST_SAMPLES, measured
from sojourn.measure.smooth import Window, lasting, timed_longer
from sojourn.model.cores import slowed
from sojourn.topology import Topology
from sojourn.topology.load import StationLoad

# Growth below this many standard errors of a single count is chance.
_TREND = 3.0
# A trend needs at least this many counts.
_LEAST_COUNTS = 6
# Weights of a new value in the level of the forecast, and of a new slope in its trend.
_LEVEL, _SLOPE = 0.5, 0.2
# Current arrivals and the growth of queues are those of this time, and at least of as many
# observations.
_LATELY_S, _LATELY = 10.0, 2
# Operators with less than this part of the work do not count for the uncertainty.
_MATTERS = 0.1


@dataclass(frozen=True, slots=True)
class Startable:
    """Operators with processors that do not start: the number running, wanted, and the cause.

    >>> print(Startable({"score": 2}, {"score": 6}, {"score": "out of memory"}))
    only 2 of 6 processors of score are running (out of memory)
    """

    running: Mapping[str, int]
    wanted: Mapping[str, int]
    why: Mapping[str, str]

    def __str__(self) -> str:
        return ", ".join(
            f"only {k} of {self.wanted[name]} processors of {name} are running"
            + f" ({self.why[name]})" * bool(self.why[name])
            for name, k in self.running.items()
        )

    def runs(self, allocation: Mapping[str, int]) -> dict[str, int]:
        """Return *allocation* without processors that do not start."""
        return {name: min(k, self.running.get(name, k)) for name, k in allocation.items()}

    def bound(self, topology: Topology) -> Topology:
        """Return *topology* with `max_processors` limited to the processors that start.

        The limit is never below `min_processors`.
        """
        operators = [topology.operator[name] for name in self.running]
        return topology.with_operators(
            *(
                replace(o, max_processors=max(self.running[o.name], o.min_processors))
                for o in operators
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """The basis of a decision: the estimated load, and its prediction."""

    knowledge: Knowledge
    goal: Goal
    seen: Observation
    """The average of recent observations."""
    topology: Topology
    """The topology to plan for: as measured, with service times on unshared cores, and with
    `max_processors` limited to the processors that start."""
    noise: Mapping[str, float]
    """Relative standard error of the work of each operator."""
    offered: Mapping[str, float]
    """Processors that the load keeps busy, averaged while the load was steady."""
    offered_noise: Mapping[str, float]
    """Relative standard error of `offered`."""
    behind: Mapping[str, float]
    """Records in excess of steady state, at operators with a backlog."""
    needs: Mapping[str, int]
    """Processors that clear the backlog in time; empty without a backlog."""
    startable: Startable
    expected: Outlook | None
    """Prediction for the current processors; None if they do not keep up."""
    floor_s: float = inf
    """The statistic without any waiting; infinite if it is not needed."""
    lowest_s: float = inf
    """The lowest statistic measured lately; infinite if unknown, or not needed."""

    @property
    def current(self) -> dict[str, int]:
        return dict(self.knowledge.allocation)

    @property
    def level(self) -> float | None:
        """The level of the error budget; None if the goal is not that of an objective."""
        budget = self.knowledge.budget
        if budget is None or budget.objective.target != self.goal.target:
            return None
        return budget.level

    @property
    def overspent(self) -> bool:
        """Whether more slices have missed the target than the objective permits."""
        budget = self.knowledge.budget
        return self.level is not None and budget is not None and budget.overspent

    @property
    def measured_s(self) -> float:
        """The measured statistic; NaN if no root completed."""
        return measured_s(self.seen, self.goal.statistic)

    @property
    def uncertainty(self) -> float:
        """The relative standard error of the load, of the least certain major operator."""
        erlangs = {name: load.erlangs for name, load in self.topology.loads.items()}
        matter = [n for n, e in erlangs.items() if e >= _MATTERS * sum(erlangs.values())]
        return max((self.noise[name] for name in matter), default=0.0)

    def predicted(
        self, allocation: Mapping[str, int], topology: Topology | None = None
    ) -> Outlook | None:
        """Return the prediction for *allocation* at this load, or that of *topology*."""
        return _predicted(topology or self.topology, self.goal, self.startable, allocation)

    def loads(self, allocation: Mapping[str, int]) -> Mapping[str, StationLoad]:
        """Return the loads of operators while the processors of *allocation* share cores."""
        return slowed(self.topology, allocation).loads

    @property
    def planned(self) -> Outlook | None:
        """Prediction for the current processors at the level of the error budget, if known."""
        if self.level is None:
            return self.expected
        return self.predicted(self.current, self.topology.scaled(1 + self.level))

    def text(self, outlook: Outlook | None, times: float = 1.0) -> str:
        """Return a prediction as text, with waits multiplied by *times*."""
        seconds = inf if outlook is None else outlook.seconds
        if times > 1 and self.floor_s < seconds < inf:
            seconds = self.floor_s + times * (seconds - self.floor_s)
        if seconds == inf:
            return f"predicted {self.goal.statistic} is unbounded"
        return f"predicted {self.goal.statistic} is {seconds:.3g} s"


def situation(
    knowledge: Knowledge,
    seen: Observation,
    goal: Goal,
    *,
    drain_s: float,
    forecast: bool = False,
    learns: bool = True,
) -> Situation:
    """Return the current situation; *seen* is the average of recent observations.

    With a *forecast* the load is the one expected when a change has taken effect. The floor and
    the lowest latency are computed only if the policy *learns* from the error of the model.
    """
    history, arriving, running = knowledge.observations, seen, knowledge.allocation
    topology = steady = measured(knowledge.topology, seen)
    shared = slowed(steady, running)
    offered = {name: load.erlangs for name, load in shared.loads.items()}
    usable = [o for o in history if o.usable]
    number = max(_LATELY, lasting(usable, _LATELY_S))
    if falling_behind(shared, usable[-number:], running, goal.model):
        # queues grow, so more must arrive now than on average
        lately = timed_longer(Window(number)(history), history)
        arriving = max((seen, lately), key=lambda o: o.arrivals_per_s)
        topology = measured(knowledge.topology, arriving)
    if forecast:
        topology = topology.scaled(_growth(knowledge, topology))
    if topology is not steady:
        shared = slowed(topology, running)
    waiting = behind(shared, history[-1], running, goal.model)
    starts = _startable(knowledge)
    bound = starts.bound(topology)
    floor = lowest = inf
    if goal.target is not None and learns:
        floor = floor_s(bound, model=goal.model, statistic=goal.statistic)
        lowest = lowest_s(history, goal.statistic)
    return Situation(
        knowledge=knowledge,
        goal=goal,
        seen=seen,
        topology=bound,
        noise=_noise(topology, arriving),
        offered=offered,
        offered_noise=_noise(steady, seen),
        behind=waiting,
        needs=drain_needs(topology, waiting, drain_s) if waiting else {},
        startable=starts,
        expected=_predicted(bound, goal, starts, running),
        floor_s=floor,
        lowest_s=lowest,
    )


def _predicted(
    topology: Topology, goal: Goal, starts: Startable, allocation: Mapping[str, int]
) -> Outlook | None:
    runs = starts.runs(allocation)
    return outlook(topology, runs, model=goal.model, statistic=goal.statistic)


def _noise(topology: Topology, seen: Observation) -> dict[str, float]:
    noise = {}
    for name, operator in seen.operators.items():
        arrived = operator.arrivals_per_s * seen.lasted_s
        counted = topology.loads[name].arrival_scv / max(arrived, 1.0)
        timed = topology.loads[name].service_scv / max(operator.samples, LEAST_SAMPLES)
        noise[name] = sqrt(max(counted, 1 / max(arrived, 1.0)) + timed)
    return noise


def _growth(knowledge: Knowledge, topology: Topology) -> float:
    """Return the factor by which the load is forecast to grow, 1 or more.

    Growth within chance does not count. Neither does a decrease: the policy reacts to that when
    it has been measured.
    """
    counted = [(o.at_s, o.arrivals_per_s) for o in knowledge.observations if o.usable]
    if len(counted) < _LEAST_COUNTS:
        return 1.0
    lasted_s = knowledge.observations[-1].lasted_s
    expected = holt(counted, knowledge.at_s + lasted_s + knowledge.pause_s)
    growth = expected / topology.arrivals_per_s
    scv = max(topology.loads[name].arrival_scv for name in topology.operator)
    chance = sqrt(max(1.0, scv) / (topology.arrivals_per_s * lasted_s))
    return growth if growth > 1 + _TREND * chance else 1.0


def holt(history: Sequence[tuple[float, float]], at_s: float) -> float:
    """Return the forecast for *at_s* from a smoothed level and a smoothed trend (Holt 1957).

    *history* are pairs of time and value, oldest first. The forecast is never negative. The
    times need not be equidistant: the trend is per second.

    >>> holt([(0.0, 10.0), (10.0, 12.0), (20.0, 14.0), (30.0, 16.0)], 40.0)
    18.0
    """
    (last_s, level), *later = history
    slope = 0.0
    if later and later[0][0] > last_s:
        slope = (later[0][1] - level) / (later[0][0] - last_s)
    for time_s, value in later:
        gap_s = time_s - last_s
        if gap_s <= 0:
            continue
        before = level
        level = _LEVEL * value + (1 - _LEVEL) * (level + slope * gap_s)
        slope = _SLOPE * (level - before) / gap_s + (1 - _SLOPE) * slope
        last_s = time_s
    return max(0.0, level + slope * (at_s - last_s))


def _startable(knowledge: Knowledge) -> Startable:
    """Return the operators that lacked processors in all of the last observations."""
    usable = [o for o in knowledge.observations if o.usable]
    lately = usable[-lasting(usable, STARTS_S) :]
    enough = bool(usable) and sum(o.lasted_s for o in lately) > STARTS_S - usable[-1].lasted_s
    short = {
        name: max(1, *(o.operators[name].running for o in lately))
        for name in knowledge.topology.operator
        if enough and all(o.operators[name].running < o.operators[name].wanted for o in lately)
    }
    last = lately[-1].operators if lately else {}
    return Startable(
        running={name: k for name, k in short.items() if k < knowledge.allocation[name]},
        wanted={name: knowledge.allocation[name] for name in short},
        why={name: last[name].missing for name in short},
    )

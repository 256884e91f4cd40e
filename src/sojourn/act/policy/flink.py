"""The autoscaler of Flink's Kubernetes operator: a target utilisation, lag, and patience.

Rates from outside are propagated through the topology. An operator should have processors for

    lag / catch-up time + rate * restart time / catch-up time + rate / utilisation

records per second. A change is triggered only by an operator that is out of its bounds: below
the requirement of lag and rate at the upper one (0.7 + 0.3, so the whole capacity), or above
their requirement, with a restart, at the lower one (0.7 - 0.3). Then all operators get their
recommendation. Scaling down is delayed by an hour, and then uses the highest recommendation of
that hour.

It differs from the original where it must. Rates with loops are solved as equations instead of
in topological order. Rates are not rounded to whole records. The backlog at any operator is
lag: in Flink, backpressure keeps the backlog in front of the sources, while here queues are
between operators. Busy processors are averaged. Memory, quotas, partitions and ineffective
scaling are not considered.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from math import inf
from statistics import fmean
from typing import Annotated, ClassVar, NamedTuple

from sojourn.act.options import options
from sojourn.act.policy.base import PolicyContext, Tuning
from sojourn.act.recommendation import (
    Recommended,
    bounded,
    demand,
    held,
    listed,
    recommended,
    whole,
)
from sojourn.errors import BadInput
from sojourn.knowledge import Knowledge, Wish, allocation_text
from sojourn.measure.observation import Observation
from sojourn.measure.smooth import Window
from sojourn.topology.traffic import rates

# Sums of times differ from the clock by rounding.
_ROUNDING_S = 1e-6


def policy(context: PolicyContext, /) -> "Flink":
    return Flink(most=context.most)


@dataclass(frozen=True, slots=True, kw_only=True)
class Flink:
    """Keeps operators near a target utilisation, and changes them rarely."""

    tuning: ClassVar[Tuning] = Tuning("utilisation", few=1.0, many=0.2)

    most: int | None = None
    # The published options, each below its published name, with the published defaults.
    # utilization.target
    utilisation: Annotated[float, "target utilisation of an operator"] = 0.7
    # target.utilization.boundary
    boundary: Annotated[float, "allowed deviation from the target utilisation"] = 0.3
    # catch-up.duration
    catch_up_s: Annotated[float, "time to clear lag; 0 ignores lag"] = 1800.0
    # restart.time
    restart_s: Annotated[float, "expected restart time of a change"] = 300.0
    # restart.time-tracking.enabled
    track_restarts: Annotated[bool, "use the longest measured restart time instead"] = False
    # restart.time-tracking.limit
    longest_restart_s: Annotated[float, "upper limit for a measured restart time"] = 900.0
    # metrics.window
    window_s: Annotated[float, "time over which measurements are averaged"] = 900.0
    # stabilization.interval
    stabilisation_s: Annotated[float, "time after a change without measurements"] = 300.0
    # scale-down.interval
    scale_down_s: Annotated[float, "time for which fewer must be recommended"] = 3600.0
    # scale-down.max-factor
    most_down: Annotated[float, "fraction of its processors an operator may lose"] = 0.6
    # scale-up.max-factor
    most_up: Annotated[float, "multiple of its processors an operator may gain"] = 100_000.0
    # vertex.min-parallelism
    fewest: Annotated[int, "minimum processors of an operator"] = 1
    # vertex.max-parallelism
    largest: Annotated[int, "maximum processors of an operator"] = 200
    # backlog-processing.lag-threshold
    backlog_s: Annotated[float, "lag above which nothing is scaled down"] = 300.0
    # observed-true-processing-rate.lag-threshold
    observed_lag_s: Annotated[
        float, "lag above which the observed rate is used as the capacity"
    ] = 30.0
    # observed-true-processing-rate.switch-threshold
    observed_switch: Annotated[
        float, "only if it is below the computed capacity by this fraction"
    ] = 0.15
    # observed-true-processing-rate.min-observations
    observed_least: Annotated[int, "observations with such a lag required for that"] = 2

    def __post_init__(self) -> None:
        for name, option in options(self).items():
            if not 0 <= getattr(self, name) < inf:
                raise BadInput(f"flink: {name} is {option.value}; write 0 or more")
        for name in ("utilisation", "most_down"):
            if not 0 < getattr(self, name) <= 1:
                raise BadInput(
                    f"flink: {name} is {getattr(self, name)}; it must be between 0 and 1"
                )
        if not 1 <= self.fewest <= self.largest:
            raise BadInput(
                f"flink: from {self.fewest} to {self.largest} processors; write 1 or more, and "
                "the smaller number first"
            )

    def __call__(self, knowledge: Knowledge, /) -> Wish:
        if knowledge.seen is None or not knowledge.seen.usable:
            return held(knowledge)
        turn, before = _Turn(self, knowledge), dict(knowledge.allocation)
        wanted = bounded(knowledge.topology, {n: turn.right(n) for n in before})
        now = Recommended(
            knowledge=knowledge, wanted=wanted, offered=turn.offered, most=self.most
        )
        used = f"utilisation {listed({n: turn.offered[n] / k for n, k in before.items()})}"
        if knowledge.at_s < turn.ready_s - _ROUNDING_S:
            return now.hold(
                f"{used}; no decision before {turn.ready_s:g} s: a change needs "
                f"{self.stabilisation_s:g} s to stabilise, then "
                f"{self.window_s:g} s are measured"
            )
        asked = {name: turn.asked(name, wanted[name]) for name in before}
        after = {name: ask.processors for name, ask in asked.items()}
        out = [n for n, k in before.items() if asked[n].out_of_bounds and after[n] != k]
        if out:
            return now.change(after, f"{used}, {', '.join(out)} out of bounds")
        late = [name for name, k in before.items() if wanted[name] < k == after[name]]
        wait = f"; scaling down {', '.join(late)} is delayed" if late else ""
        return now.hold(f"{used}, within bounds: keeping {allocation_text(before)}{wait}")


class _Ask(NamedTuple):
    """The processors recommended for an operator at a time, and whether it is out of bounds."""

    at_s: float
    processors: int
    out_of_bounds: bool


class _Turn:
    """One evaluation: the averages over the window, and past recommendations.

    *offered* are the processors that the arrivals keep busy. Nothing changes before *ready_s*.
    """

    def __init__(self, settings: Flink, knowledge: Knowledge) -> None:
        self._settings, self._knowledge = settings, knowledge
        settled_s = knowledge.changed_at_s + knowledge.pause_s + settings.stabilisation_s
        self.ready_s = settled_s + settings.window_s
        window = _since(knowledge, max(settled_s, knowledge.at_s - settings.window_s))
        seen = Window(len(window))(window)
        load = demand(knowledge.topology, seen)
        service_s = {
            name: _observed_s(settings, load.service_s[name], k, name, window)
            for name, k in knowledge.allocation.items()
        }
        lag_per_s = rates(
            {n: _per_s(o.backlog, settings.catch_up_s) for n, o in seen.operators.items()},
            load.gains,
        )
        self.offered = {name: load.per_s[name] * each_s for name, each_s in service_s.items()}
        self._lag = {name: lag_per_s[name] * each_s for name, each_s in service_s.items()}
        self._restart = _per_s(_restart_s(settings, knowledge), settings.catch_up_s)
        self._behind = any(
            operator.backlog > settings.backlog_s * operator.served_per_s
            for operator in seen.operators.values()
        )
        self._past = recommended(knowledge, self.ready_s - _ROUNDING_S)

    def right(self, name: str) -> int:
        """Return the processors that an operator should have, within the scaling limits."""
        settings, k = self._settings, self._knowledge.allocation[name]
        needed = self._lag[name] + self.offered[name] * (
            1 / settings.utilisation + self._restart
        )
        times = max(1 - settings.most_down, min(needed / k, 1 + settings.most_up))
        return min(max(whole(times * k), min(k, settings.fewest)), max(k, settings.largest))

    def asked(self, name: str, wanted: int) -> _Ask:
        """Return the processors for an operator now; fewer only after `scale_down_s`."""
        now_s, k = self._knowledge.at_s, self._knowledge.allocation[name]
        if wanted >= k:
            return _Ask(now_s, wanted, self._too_few(name))
        too_many = not self._behind and self._too_many(k, self.offered[name], self._lag[name])
        fewer = [_Ask(now_s, wanted, too_many)]
        fewer += takewhile(lambda ask: ask.processors < k, self._asked_before(name))
        first_s = fewer[-1].at_s
        if (
            len(fewer) > len(self._past)
            and len(self._knowledge.episodes) == self._knowledge.keep
        ):
            # The history is full and all of it asked for fewer: assume that earlier, forgotten
            # recommendations did so too.
            first_s = self.ready_s
        since_s = now_s - self._settings.scale_down_s
        if first_s > since_s + _ROUNDING_S:
            return _Ask(now_s, k, out_of_bounds=False)
        lately = [ask for ask in fewer if ask.at_s >= since_s - _ROUNDING_S]
        return max(lately, key=lambda ask: ask.processors)

    def _asked_before(self, name: str) -> Iterator[_Ask]:
        k = self._knowledge.allocation[name]
        for past in self._past:
            too_many = self._too_many(k, past.wish.offered.get(name, inf))
            yield _Ask(past.at_s, (past.wish.wanted or {}).get(name, k), too_many)

    def _too_few(self, name: str) -> bool:
        settings = self._settings
        upper = 1.0 if self._behind else min(1.0, settings.utilisation + settings.boundary)
        needed = self._lag[name] + self.offered[name] / upper
        return needed > self._knowledge.allocation[name]

    def _too_many(self, processors: int, offered: float, lag: float = 0.0) -> bool:
        lower = self._settings.utilisation - self._settings.boundary
        return lower > 0 and processors > lag + offered * (1 / lower + self._restart)


def _since(knowledge: Knowledge, since_s: float) -> Sequence[Observation]:
    """Return the usable observations since a time, at least the last one."""
    usable = [observation for observation in knowledge.observations if observation.usable]
    return [o for o in usable if o.since_s >= since_s - _ROUNDING_S] or usable[-1:]


def _observed_s(
    settings: Flink, service_s: float, processors: int, name: str, window: Sequence[Observation]
) -> float:
    """Return the service time; under lag, from the throughput if that is much lower."""
    served_per_s = [
        o.operators[name].served_per_s
        for o in window
        if o.operators[name].backlog
        >= settings.observed_lag_s * o.operators[name].served_per_s
        > 0
    ]
    if len(served_per_s) < settings.observed_least:
        return service_s
    observed_s = processors / fmean(served_per_s)
    return observed_s if observed_s > service_s * (1 + settings.observed_switch) else service_s


def _restart_s(settings: Flink, knowledge: Knowledge) -> float:
    pauses_s = [e.cost.pause_s for e in knowledge.episodes if e.cost is not None]
    if settings.track_restarts and pauses_s:
        return min(max(pauses_s), settings.longest_restart_s)
    return settings.restart_s


def _per_s(number: float, lasted_s: float) -> float:
    return number / lasted_s if lasted_s > 0 else 0.0

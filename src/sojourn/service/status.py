"""The status of a running application, for `top`, `ps` and Prometheus, and its JSON."""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import isfinite
from typing import Any

import msgspec

from sojourn.decide.target import Target
from sojourn.engine import Health
from sojourn.errors import BadTarget, EngineError
from sojourn.knowledge import Episode, ErrorBudget, News, measured_s
from sojourn.measure.node_costs import Bill
from sojourn.measure.observation import Observation
from sojourn.model.network import PERCENTILES
from sojourn.service.supervisor import Supervisor

_MOST_DECISIONS = 10
_BURN_RATES_S = {"1h": 3600.0, "6h": 21_600.0}
# The longest service time is of the last minute, so that a scrape per minute misses none.
_LONGEST_WITHIN_S = 60.0
# The measurements of an operator.
_MEASURED = (
    "backlog", "arrivals_per_s", "served_per_s", "service_s", "wait_s", "utilisation"
)  # fmt: skip
# The fields of `Health` that are beside it in the JSON.
_BESIDE = ("inner_topics", "parts", "nodes", "node_costs")


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The last usable observation of all roots; None is unknown."""

    at_s: float
    arrivals_per_s: float | None = None
    completed_per_s: float | None = None
    target_statistic_s: float | None = None
    mean_s: float | None = None
    percentiles_s: Mapping[str, float | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorStatus:
    """An operator: its processors, bounds and measurements; None is unknown."""

    wanted: int | None = None
    running: int | None = None
    min_processors: int = 1
    max_processors: int | None = None
    sends_to: Sequence[str] = ()
    restarts: int = 0
    backlog: int | None = None
    arrivals_per_s: float | None = None
    served_per_s: float | None = None
    service_s: float | None = None
    longest_service_s: float | None = None
    """The longest service time of a record in the last minute."""
    wait_s: float | None = None
    utilisation: float | None = None
    key_busy: float | None = None
    """The utilisation of one processor by the most frequent key."""
    key: str = ""
    """The most frequent key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectiveStatus:
    """The time slices since the start, or since the objective was set."""

    slice_s: float
    kept: float
    """The part of the slices in which the target must be kept."""
    judged: int
    missed: int
    excused: Mapping[str, int] = field(default_factory=dict)
    """Missed slices that more processors would not have prevented, by cause."""
    level: float
    """The part of the load that is planned for in addition."""
    left: int | None = None
    """Slices that may still be missed within 24 hours; below 0, too many were."""
    burn_rates: Mapping[str, float] = field(default_factory=dict)
    """How fast the budget was used, by time; at 1 as much as the objective permits."""
    born: int = 0
    """Roots of the slices that were judged."""
    in_time: int = 0
    """Those of them that completed within the target."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionStatus:
    at: str
    """Its time in UTC, in ISO format."""
    at_s: float
    """Its time by the engine's clock."""
    kind: str
    before: Mapping[str, int]
    after: Mapping[str, int]
    reason: str
    carried_out: bool
    failure: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    name: str
    policy: str
    target: Target
    max_processors: int | None
    deciding: str
    """The mode of its loop."""
    why: str
    """The reason of the mode."""
    warning: str = ""
    """Why the target cannot be met; empty if it can."""
    every_s: float
    """The time between two turns of the loop."""
    at_s: float
    """The time by the engine's clock."""
    allocation: Mapping[str, int]
    measured: Measured
    objective: ObjectiveStatus | None = None
    """The objective, and whether it was kept."""
    operators: Mapping[str, OperatorStatus]
    now: str
    """The reason of the last decision."""
    usable: bool
    """Whether the last observation was usable."""
    changes: int
    """The number of changes of the allocation so far."""
    decisions: Sequence[DecisionStatus]
    """The latest decisions, the oldest first."""
    health: Health
    bill: Bill | None = None
    """The cost of nodes; None if their price is unknown."""
    history: str | None = None
    """The file of turns."""

    @property
    def processors(self) -> int:
        return sum(self.allocation.values())


class LatestDecisions:
    """The last changes, recommendations, failures and orders by hand."""

    def __init__(self) -> None:
        self._told: deque[DecisionStatus] = deque(maxlen=_MOST_DECISIONS)
        self._news = News()

    def add(self, episode: Episode) -> bool:
        """Add the next turn; return whether it is news: not a repeated recommendation."""
        if not self._news(episode):
            return False
        decision = episode.decision
        self._told.append(
            DecisionStatus(
                at=datetime.now(UTC).isoformat(timespec="seconds"),
                at_s=decision.at_s,
                kind=decision.kind,
                before=dict(decision.before.allocation),
                after=dict(decision.after.allocation),
                reason=decision.reason,
                carried_out=episode.cost is not None,
                failure=episode.failure,
            )
        )
        return True

    def told(self) -> list[DecisionStatus]:
        """Return the decisions, the oldest first."""
        return list(self._told)


def status(
    supervisor: Supervisor, decisions: Sequence[DecisionStatus] = (), history: str | None = None
) -> Status:
    orders, mode, known = supervisor.orders, supervisor.mode, supervisor.knowledge
    usable = (e.observation for e in reversed(known.episodes) if e.observation.usable)
    seen = next(usable, Observation.unusable(0.0, 0.0, "nothing was measured yet"))
    state = supervisor.health()
    allocation = dict(supervisor.engine.plan.allocation)
    last = known.episodes[-1] if known.episodes else None
    return Status(
        name=supervisor.topology.name,
        policy=orders.said,
        target=orders.target,
        max_processors=orders.most,
        deciding=mode.name,
        why=mode.why,
        warning=supervisor.warning,
        every_s=supervisor.every_s,
        at_s=supervisor.engine.now_s,
        allocation=allocation,
        measured=_measured(seen, orders.target),
        objective=objective_status(known.budget),
        operators={
            name: _operator(supervisor, name, allocation.get(name), seen, state)
            for name in supervisor.topology.operator
        },
        now="" if last is None else last.decision.reason,
        usable=last is None or last.observation.usable,
        changes=supervisor.changes,
        decisions=tuple(decisions),
        health=state,
        bill=supervisor.bill,
        history=history,
    )


def objective_status(budget: ErrorBudget | None) -> ObjectiveStatus | None:
    if budget is None:
        return None
    return ObjectiveStatus(
        slice_s=budget.objective.slice_s,
        kept=budget.objective.kept,
        judged=budget.judged,
        missed=budget.missed,
        excused=budget.causes,
        level=budget.level,
        left=budget.left,
        burn_rates={
            name: rate
            for name, seconds in _BURN_RATES_S.items()
            if (rate := budget.burn_rate(seconds)) is not None
        },
        born=budget.born,
        in_time=budget.in_time,
    )


def _measured(seen: Observation, target: Target) -> Measured:
    return Measured(
        at_s=seen.at_s,
        arrivals_per_s=_known(seen.arrivals_per_s),
        completed_per_s=_known(seen.completed_per_s),
        target_statistic_s=_known(measured_s(seen, target.statistic)),
        mean_s=_known(seen.mean_s),
        percentiles_s={
            name: _known(seen.percentile_s(ratio)) for name, ratio in PERCENTILES.items()
        },
    )


def _operator(
    supervisor: Supervisor, name: str, wanted: int | None, seen: Observation, health: Health
) -> OperatorStatus:
    operator, measured = supervisor.topology.operator[name], seen.operators.get(name)
    values: dict[str, Any] = {}
    if measured is not None:
        values = {each: _known(getattr(measured, each)) for each in _MEASURED}
        values |= {"key_busy": _known(measured.key_busy), "key": measured.hottest_name}
    return OperatorStatus(
        wanted=wanted,
        running=health.running.get(name, measured.running if measured else None),
        min_processors=operator.min_processors,
        max_processors=operator.max_processors,
        longest_service_s=_longest_service_s(supervisor.knowledge.episodes, name, seen.at_s),
        sends_to=tuple(operator.emits),
        restarts=health.restarts.get(name, 0),
        **values,
    )


def _longest_service_s(episodes: Sequence[Episode], name: str, at_s: float) -> float | None:
    """Return the longest service time of a record at an operator in the minute until *at_s*."""
    times = [
        operator.longest_service_s or 0.0
        for episode in episodes
        if episode.observation.at_s > at_s - _LONGEST_WITHIN_S
        and (operator := episode.observation.operators.get(name)) is not None
    ]
    return max(times, default=0.0) or None


def _known(value: float | None) -> float | None:
    return value if value is not None and isfinite(value) else None


def to_json(status: Status) -> dict[str, Any]:
    told: dict[str, Any] = msgspec.to_builtins(status, enc_hook=_plain)
    return told | {name: told["health"].pop(name) for name in _BESIDE}


def from_json(told: Mapping[str, Any]) -> Status:
    """Return the status from its JSON, which another version may have written.

    Missing fields have their defaults, and unknown ones are ignored. Raise `EngineError` if a
    field without a default is missing, or has another type.
    """
    beside = {name: told[name] for name in _BESIDE if name in told}
    try:
        health = {**told.get("health", {}), **beside}
        return msgspec.convert({**told, "health": health}, Status)
    except (TypeError, BadTarget, msgspec.ValidationError) as error:
        raise EngineError(
            f"its status cannot be read: {error}; use the version of sojourn that runs it"
        ) from error


def _plain(value: Any) -> object:  # noqa: ANN401 - an engine may have counted with numpy
    return dict(value) if isinstance(value, Mapping) else value.item()

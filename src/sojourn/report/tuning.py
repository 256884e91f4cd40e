"""Policies tuned to an objective with hindsight, so that they are compared at their best."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from sojourn.act.policy import Policy
from sojourn.act.policy.base import Tuning
from sojourn.knowledge import Episode
from sojourn.report.comparison import HIGHEST, Outcome, outcomes

if TYPE_CHECKING:  # importing the simulator takes a second
    from sojourn.simulate.rehearsal import Stage

Turn = Callable[[str, int, Episode], None]

# How often the range of a setting is halved, and the highest load that a policy which never
# changes may start for, as a multiple of the highest rate.
_HALVED, _MOST = 6, 1.5


@dataclass(frozen=True, slots=True, kw_only=True)
class _Candidate:
    name: str
    policy: Policy
    starts_for: float | None = None


def tunable(policies: Mapping[str, Policy]) -> int:
    """Return how many of *policies* have a setting to tune."""
    return sum(_tuning(name, policy) is not None for name, policy in policies.items())


def tuned(
    stage: "Stage", policies: Mapping[str, Policy], seeds: int, *, turn: Turn
) -> list[Outcome]:
    """Return the outcome of each policy with the cheapest setting that keeps the objective.

    If none keeps it, it has the setting with the most processors.
    """
    return [_best(stage, name, policy, seeds, turn) for name, policy in policies.items()]


def runs(policies: Mapping[str, Policy], seeds: int) -> int:
    """Return how many rehearsals `tuned` takes."""
    return seeds * (len(policies) + _HALVED * tunable(policies))


def _best(stage: "Stage", name: str, policy: Policy, seeds: int, turn: Turn) -> Outcome:
    tuning = _tuning(name, policy)
    if tuning is None:
        return _outcome(stage, _Candidate(name=name, policy=policy), seeds, turn)
    few, many, best = tuning.few, tuning.many, None
    for _ in range(_HALVED):
        middle = (few + many) / 2
        found = _outcome(stage, _with(stage, name, policy, middle), seeds, turn)
        if found.estimate("kept").value >= stage.objective.kept:
            many, best = middle, found
        else:
            few = middle
    return best or _outcome(stage, _with(stage, name, policy, many), seeds, turn)


def _tuning(name: str, policy: Policy) -> Tuning | None:
    if name == HIGHEST:  # by what it starts with
        return Tuning("", few=0.0, many=_MOST)
    return cast("Tuning | None", getattr(policy, "tuning", None))


def _with(stage: "Stage", name: str, policy: Policy, value: float) -> _Candidate:
    if name == HIGHEST:
        return _Candidate(name=name, policy=policy, starts_for=value * stage.highest_per_s)
    made: Any = policy
    option = made.tuning.option
    return _Candidate(
        name=f"{name}:{option}={value:.3g}", policy=replace(made, **{option: value})
    )


def _outcome(stage: "Stage", candidate: _Candidate, seeds: int, turn: Turn) -> Outcome:
    starts = {} if candidate.starts_for is None else {candidate.name: candidate.starts_for}
    (found,) = outcomes(
        stage, {candidate.name: candidate.policy}, seeds, starts=starts, turn=turn
    )
    return found

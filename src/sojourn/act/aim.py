"""The allocation that a load calls for: there is one for any load.

A plan may be impossible, but a running application needs processors: the allocation is then
the closest one, and a note says what it does not reach.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sojourn.act.ration import ration
from sojourn.decide.assign import assign
from sojourn.decide.minimise import minimise
from sojourn.decide.nodes import Nodes
from sojourn.decide.target import Target
from sojourn.errors import (
    BoundTooLow,
    EndlessLoop,
    HotKey,
    TargetBelowFloor,
    TargetOutOfReach,
    TooFewCores,
    TooFewProcessors,
)
from sojourn.topology import Topology

__all__ = ["Aim", "Goal", "aim"]

# Where no number of processors meets the target, this multiple of the best is aimed at.
_NEAR = 1.1


# A plan is made at every turn, so the search for a percentile is short. Its start is rarely a
# processor too many, and most of the time goes into the proof of that.
_LOOKS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """What processors are for: a target with as few as possible, or the best use of all.

    Without a target all of *most* are used (DRS's optimisation 6), with one the fewest that
    meet it, at most *most* (optimisation 8).

    >>> print(Goal(target=Target("p95", 1.0), most=22))
    p95 ≤ 1 s with at most 22 processors
    """

    target: Target | None = None
    most: int | None = None
    nodes: Nodes | None = None
    model: str = "gigk"

    def __str__(self) -> str:
        most = "" if self.most is None else f"{self.most} processors"
        return " with at most ".join(str(part) for part in (self.target, most) if part)

    def allows(self, allocation: Mapping[str, int]) -> bool:
        """Tell whether *allocation* is within the limit.

        With *nodes* only what was planned is: it uses them whole.
        """
        within = self.most is None or sum(allocation.values()) <= self.most
        return within and self.nodes is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Aim:
    """Processors per operator; the note is empty where all that was asked for is met."""

    allocation: dict[str, int]
    note: str = ""


def aim(
    topology: Topology,
    goal: Goal,
    needs: Mapping[str, int] | None = None,
    *,
    asked: Target | None = None,
) -> Aim:
    """Return the allocation that *goal* calls for, or what comes closest.

    *needs* are processors that operators need at least, to clear a backlog. Notes name the
    target that was *asked* for, where that of the goal is stricter to be on the safe side.

    Where the goal cannot be reached:

    - `max_processors` of an operator is too low to keep up: it gets that many
    - one key of an operator is too much to keep up: it gets as many as are of use
    - *most* processors do not keep up: they are shared in proportion to need
    - *most* processors do not meet the target: all of them are used
    - no number meets the target: the fewest within 10 % of the best possible
    - the cores do not keep up: the plan for enough cores
    """
    try:
        return Aim(allocation=_planned(_with_needs(topology, needs or {}), goal))
    except (BoundTooLow, HotKey) as error:
        return Aim(allocation=_unbound(topology, goal, needs, error), note=str(error))
    except TooFewProcessors as error:
        needed = {
            name: max(load.erlangs, (needs or {}).get(name, 0))
            for name, load in topology.loads.items()
        }
        return Aim(allocation=ration(topology, needed, error.processors), note=str(error))
    except (TargetBelowFloor, TargetOutOfReach) as error:
        note = _not_reached(error, goal.target, asked or goal.target)
        return Aim(allocation=_nearest(topology, goal, needs, error), note=note)
    except TooFewCores as error:
        enough = replace(topology, cores=None)
        return Aim(allocation=aim(enough, goal, needs).allocation, note=str(error))
    except EndlessLoop as error:
        # Its percentiles cannot be worked out; its mean can.
        by_mean = replace(goal, target=Target("mean", _seconds(goal)))
        return Aim(allocation=aim(topology, by_mean, needs).allocation, note=str(error))


_Needs = Mapping[str, int] | None


def _with_needs(topology: Topology, needs: Mapping[str, int]) -> Topology:
    """Return *topology* with `min_processors` at what operators need, within their bounds."""
    operators = []
    for operator in topology.operators:
        least = max(operator.min_processors, needs.get(operator.name, 1))
        most = operator.most_processors
        operators.append(
            replace(operator, min_processors=least if most is None else min(least, most))
        )
    return replace(topology, operators=tuple(operators))


def _planned(topology: Topology, goal: Goal) -> dict[str, int]:
    if goal.target is None:
        most = goal.most or len(topology.operators)
        plan = assign(topology, most, model=goal.model, nodes=goal.nodes)
    else:
        plan = minimise(
            topology,
            goal.target,
            model=goal.model,
            most=goal.most,
            nodes=goal.nodes,
            looks=_LOOKS,
        )
    return dict(plan.allocation)


def _unbound(
    topology: Topology, goal: Goal, needs: _Needs, error: BoundTooLow | HotKey
) -> dict[str, int]:
    """Return the plan without the operator's bound, and then apply the bound."""
    operators = tuple(
        replace(operator, max_processors=None, hottest_key=0.0)
        if operator.name == error.operator
        else operator
        for operator in topology.operators
    )
    allocation = aim(replace(topology, operators=operators), goal, needs).allocation
    most = topology.operator[error.operator].most_processors or allocation[error.operator]
    return {**allocation, error.operator: min(allocation[error.operator], most)}


def _nearest(
    topology: Topology,
    goal: Goal,
    needs: _Needs,
    error: TargetBelowFloor | TargetOutOfReach,
) -> dict[str, int]:
    if isinstance(error, TargetOutOfReach) and error.needed is not None:
        return aim(topology, replace(goal, target=None), needs).allocation
    best_s = error.floor_s if isinstance(error, TargetBelowFloor) else error.reached_s
    statistic = goal.target.statistic if goal.target else "mean"
    near = replace(goal, target=Target(statistic, best_s * _NEAR))
    return aim(topology, near, needs).allocation


def _not_reached(
    error: TargetBelowFloor | TargetOutOfReach, target: Target | None, asked: Target | None
) -> str:
    # the goal is stricter than what was asked for, to be on the safe side
    reliably = "reliably " if target != asked else ""
    if isinstance(error, TargetBelowFloor):
        return (
            f"no number of processors {reliably}reaches {asked}: without any waiting it is "
            f"still {error.floor_s:.3g} s"
        )
    if error.needed is None:
        return (
            f"operators at their max_processors do not {reliably}reach {asked}; raise "
            "max_processors"
        )
    return (
        f"{error.processors} processors do not {reliably}reach {asked}; "
        f"{error.needed} are needed"
    )


def _seconds(goal: Goal) -> float:
    return goal.target.seconds if goal.target else 1.0

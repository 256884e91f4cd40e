"""The best possible allocation for any load.

A goal may be impossible, but a running application needs processors in any case. The result is
then the closest allocation, with a note that states the part of the goal that is missed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil, inf

from sojourn.act.latency import not_reached
from sojourn.act.recommendation import ration
from sojourn.decide.assign import assign
from sojourn.decide.gains import QUICK
from sojourn.decide.minimise import minimise
from sojourn.decide.solution import NodeSize
from sojourn.decide.target import Target
from sojourn.errors import (
    BoundTooLow,
    CannotBeDone,
    EndlessLoop,
    HotKey,
    TargetBelowFloor,
    TargetOutOfReach,
    TargetTooStrict,
    TooFewCores,
    TooFewProcessors,
)
from sojourn.topology import Topology

# If no number of processors meets the target, plan for this multiple of the best latency.
_NEAR = 1.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """The objective: a target with the fewest processors, or the best use of all.

    Without a target, all of *most* are used (DRS's optimisation 6); with one, the fewest that
    meet it, up to *most* (optimisation 8).

    >>> print(Goal(target=Target("p95", 1.0), most=22))
    p95 ≤ 1 s with at most 22 processors
    """

    target: Target | None = None
    most: int | None = None
    nodes: NodeSize | None = None
    model: str = "gigk"

    @property
    def statistic(self) -> str:
        """The statistic of the target; the mean if there is none."""
        return self.target.statistic if self.target else "mean"

    def __str__(self) -> str:
        most = "" if self.most is None else f"{self.most} processors"
        return " with at most ".join(str(part) for part in (self.target, most) if part)

    def allows(self, allocation: Mapping[str, int]) -> bool:
        """Return whether an *allocation* other than the planned one is within the limits.

        With *nodes* none is: a plan uses whole nodes.
        """
        within = self.most is None or sum(allocation.values()) <= self.most
        return within and self.nodes is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Aim:
    """Processors per operator, and the reason if they do not reach the goal."""

    allocation: dict[str, int]
    note: str = ""
    """Text for the part of the goal that is missed; empty if it is reached."""
    error: CannotBeDone | None = None
    """The error that prevented the plan."""


def aim(
    topology: Topology,
    goal: Goal,
    needs: Mapping[str, int] | None = None,
    *,
    asked: Target | None = None,
    lowest_s: float = inf,
) -> Aim:
    """Return the allocation that reaches *goal*, or the closest one.

    *needs* is the minimum of processors that clears a backlog. Notes name the target *asked*
    for, because the target of the goal may be stricter for safety, and the lowest measured
    latency, *lowest_s*, if it is below the floor of the model.

    If the goal cannot be reached:

    - `max_processors` of an operator is too low to keep up: it gets the maximum
    - one key of an operator cannot be served: it gets one processor for the key, and those
      that the other keys need
    - *most* processors do not keep up: they are shared in proportion to need
    - *most* processors do not meet the target: all of them are used
    - no number meets the target: the fewest within 10 % of the best latency
    - the cores do not keep up: the plan for enough cores
    """
    try:
        return Aim(allocation=_planned(_with_needs(topology, needs or {}), goal))
    except CannotBeDone as error:
        said = asked or goal.target
        if lowest_s < inf and isinstance(error, TargetBelowFloor):
            note = not_reached(said, lowest_s)
        else:
            note = _note(error, goal.target if lowest_s == inf else said, said)
        return Aim(
            allocation=_closest(topology, goal, needs or {}, error), note=note, error=error
        )


def _with_needs(topology: Topology, needs: Mapping[str, int]) -> Topology:
    """Return *topology* with `min_processors` raised to *needs*, within the bounds."""
    if not needs:
        return topology
    least = {o.name: max(o.min_processors, needs.get(o.name, 1)) for o in topology.operators}
    return topology.with_operators(
        *(
            replace(o, min_processors=min(least[o.name], o.most_processors or least[o.name]))
            for o in topology.operators
        )
    )


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
            effort=QUICK,
        )
    return dict(plan.allocation)


def _closest(
    topology: Topology, goal: Goal, needs: Mapping[str, int], error: CannotBeDone
) -> dict[str, int]:
    """Return the allocation for a goal relaxed according to *error*."""
    # only a target can be out of reach, so the default is never used
    target = goal.target or Target("mean", 1.0)
    match error:
        case BoundTooLow():
            return _unbound(topology, goal, needs, error.operator)
        case HotKey():
            return _beside_key(topology, goal, needs, error.operator)
        case TooFewProcessors():
            loads = topology.loads.items()
            needed = {name: max(load.erlangs, needs.get(name, 0)) for name, load in loads}
            return ration(topology, needed, error.processors)
        case TargetOutOfReach(needed=int()):
            goal = replace(goal, target=None)
        case (
            TargetOutOfReach(reached_s=best_s)
            | TargetTooStrict(reached_s=best_s)
            | TargetBelowFloor(floor_s=best_s)
        ):
            goal = replace(goal, target=replace(target, seconds=best_s * _NEAR))
        case TooFewCores():
            topology = replace(topology, cores=None)
        case EndlessLoop():  # its mean can be computed, its percentiles cannot
            goal = replace(goal, target=replace(target, statistic="mean"))
        case _:
            raise error
    return aim(topology, goal, needs).allocation


def _unbound(
    topology: Topology, goal: Goal, needs: Mapping[str, int], name: str
) -> dict[str, int]:
    """Return the plan without the operator's `max_processors`, cut down to it afterwards."""
    operator = topology.operator[name]
    unbound = topology.with_operators(replace(operator, max_processors=None))
    allocation = aim(unbound, goal, needs).allocation
    most = operator.max_processors or allocation[name]
    return {**allocation, name: min(allocation[name], most)}


def _beside_key(
    topology: Topology, goal: Goal, needs: Mapping[str, int], name: str
) -> dict[str, int]:
    """Return the plan with one processor, always busy, for the hottest key.

    The other keys get their share of the processors that a plan without this key has.
    """
    operator = topology.operator[name]
    without = topology.with_operators(replace(operator, hottest_key=0.0))
    allocation = aim(without, goal, needs).allocation
    useful = 1 + ceil((1 - operator.hottest_key) * allocation[name])
    useful = max(useful, operator.min_processors)
    return {**allocation, name: min(allocation[name], useful)}


def _note(error: CannotBeDone, target: Target | None, asked: Target | None) -> str:
    # for safety, the target of the goal may be stricter than the one asked for
    reliably = "reliably " if target != asked else ""
    match error:
        case TargetBelowFloor(hot=hot) if hot:
            return (
                f"more processors do not {reliably}reach {asked}: {hot}, and its records are "
                "processed one at a time; with any number of processors it is still "
                f"{error.floor_s:.3g} s"
            )
        case TargetBelowFloor():
            return (
                f"no number of processors {reliably}reaches {asked}: without any waiting it is "
                f"still {error.floor_s:.3g} s"
            )
        case TargetOutOfReach(needed=None):
            return (
                f"operators at their max_processors do not {reliably}reach {asked}; raise "
                "max_processors"
            )
        case TargetOutOfReach():
            return (
                f"{error.processors} processors do not {reliably}reach {asked}; "
                f"{error.needed} are needed"
            )
        case TargetTooStrict():
            return (
                f"more than {error.processors} processors are needed to {reliably}reach {asked}"
            )
    return str(error)

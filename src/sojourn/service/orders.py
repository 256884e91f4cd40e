"""What the loop of a running application is told: a goal, and processors by hand."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from sojourn.act.policy.base import Policy
from sojourn.decide.target import Target
from sojourn.errors import BadAllocation, BadTarget
from sojourn.knowledge import Knowledge, Wish
from sojourn.model.network import check_allocation
from sojourn.topology import Topology

__all__ = ["LoopSettings", "MakePolicy", "NoChange", "Orders", "checked_allocation"]

MakePolicy: TypeAlias = Callable[[Target, int | None], tuple[Policy, str]]
"""A policy for a target and the most processors, and a line that says what it was told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopSettings:
    """What a loop begins with: its goal, how often it looks, whether it may act.

    *midnight_s* is the time of the day when the engine's clock is 0.
    """

    target: Target
    most: int | None = None
    every_s: float = 1.0
    active: bool = True
    midnight_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Orders:
    """A goal, and the policy that is after it; *said* is for people."""

    target: Target
    most: int | None
    policy: Policy
    said: str

    @classmethod
    def of(
        cls, make: MakePolicy, topology: Topology, target: Target, most: int | None
    ) -> "Orders":
        """Return the orders for a goal, having checked that operators fit into *most*."""
        least = sum(operator.min_processors for operator in topology.operators)
        if most is not None and most < least:
            raise BadTarget(
                f"at most {most} processors, but the operators have {least} at least; "
                "allow as many"
            )
        policy, said = make(target, most)
        return cls(target=target, most=most, policy=policy, said=said)


@dataclass(frozen=True, slots=True)
class NoChange:
    """A policy that changes nothing, because deciding failed."""

    reason: str

    def __call__(self, knowledge: Knowledge, /) -> Wish:
        """Return that nothing is done."""
        return Wish(allocation=knowledge.allocation, reason=self.reason)


def checked_allocation(
    topology: Topology, before: Mapping[str, int], asked: Mapping[str, int], most: int | None
) -> dict[str, int]:
    """Return all processors where some are *asked* for, in the order of the topology.

    Raise `BadAllocation` where an operator is not known, or a bound is not kept.
    """
    if not asked:
        raise BadAllocation("no operator is named; write some, such as match=12")
    check_allocation(topology, {**before, **asked})
    for name, processors in asked.items():
        operator = topology.operator[name]
        if processors < operator.min_processors:
            raise BadAllocation(
                f"{name}: {processors} processors, and its min_processors is "
                f"{operator.min_processors}; ask for as many"
            )
        if operator.max_processors is not None and processors > operator.max_processors:
            raise BadAllocation(
                f"{name}: {processors} processors, and its max_processors is "
                f"{operator.max_processors}; ask for no more"
            )
    after = {name: asked.get(name, before[name]) for name in topology.operator}
    total = sum(after.values())
    if most is not None and total > max(most, sum(before.values())):
        raise BadAllocation(
            f"these are {total} processors in all, and {most} are the most there may be; "
            f"allow more with --max-processors {total}"
        )
    return after

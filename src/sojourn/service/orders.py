"""The orders of users to a running loop: its goal, and processors set by hand."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from sojourn.act.node_scaling import NodeBounds
from sojourn.act.policy.base import Policy
from sojourn.decide.objective import Objective
from sojourn.decide.place import DEFAULT, Placer, placer
from sojourn.decide.target import Target
from sojourn.errors import BadAllocation, BadTarget
from sojourn.measure.node_costs import check_price
from sojourn.model.network import check_allocation
from sojourn.topology import Topology

MakePolicy: TypeAlias = Callable[[Target, int | None], tuple[Policy, str]]
"""Returns a policy for a target and a maximum number of processors, and its description."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopSettings:
    objective: Objective
    most: int | None = None
    """The maximum number of processors."""
    every_s: float = 1.0
    """The time between two turns."""
    active: bool = True
    """Whether the loop acts, or only recommends."""
    midnight_s: float = 0.0
    """The time of day, in seconds, when the engine's clock is 0."""
    price_per_hour: float | None = None
    """The price of a node; None if there is no bill."""
    placement: str = DEFAULT
    """The name of the placer."""
    nodes: NodeBounds = field(default_factory=NodeBounds)
    """Bounds within which nodes are requested and released."""

    def __post_init__(self) -> None:
        if self.price_per_hour is not None:
            check_price(self.price_per_hour)


@dataclass(frozen=True, slots=True, kw_only=True)
class Orders:
    """A goal, and the policy and the placer for it."""

    objective: Objective
    most: int | None
    """The maximum number of processors."""
    policy: Policy
    placement: str
    """The name of the placer."""
    placer: Placer
    said: str
    """A description of them for users."""

    @property
    def target(self) -> Target:
        return self.objective.target

    @classmethod
    def of(
        cls,
        make: MakePolicy,
        topology: Topology,
        objective: Objective,
        most: int | None,
        placement: str = DEFAULT,
    ) -> "Orders":
        """Return the orders for a goal. Raise `BadTarget` if *most* is too few."""
        least = sum(operator.min_processors for operator in topology.operators)
        if most is not None and most < least:
            raise BadTarget(
                f"the maximum is {most} processors, and the operators need {least} at least; "
                "allow as many"
            )
        policy, said = make(objective.target, most)
        places = "" if placement == DEFAULT else f", placement {placement}"
        return cls(
            objective=objective,
            most=most,
            policy=policy,
            placement=placement,
            placer=placer(placement),
            said=f"{said}{places}",
        )


def checked_allocation(
    topology: Topology, before: Mapping[str, int], asked: Mapping[str, int], most: int | None
) -> dict[str, int]:
    """Return the processors of all operators: as *asked*, else as *before*.

    Raise `BadAllocation` if an operator is unknown, or a bound is exceeded.
    """
    if not asked:
        raise BadAllocation("no operator is named; write, for example, match=12")
    check_allocation(topology, {**before, **asked})
    for name, processors in asked.items():
        operator = topology.operator[name]
        if processors < operator.min_processors:
            raise BadAllocation(
                f"{name}: {processors} processors is below its min_processors, "
                f"{operator.min_processors}; ask for at least that many"
            )
        if operator.max_processors is not None and processors > operator.max_processors:
            raise BadAllocation(
                f"{name}: {processors} processors is above its max_processors, "
                f"{operator.max_processors}; ask for no more"
            )
    after = {name: asked.get(name, before[name]) for name in topology.operator}
    total = sum(after.values())
    if most is not None and total > max(most, sum(before.values())):
        raise BadAllocation(
            f"{total} processors in all is above the maximum, {most}; "
            f"raise it with --max-processors {total}"
        )
    return after

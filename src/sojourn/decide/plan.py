"""A plan: which processors run where. Policy, loop, engine and history all use it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from numbers import Integral
from typing import TypeAlias

from sojourn.errors import BadAllocation
from sojourn.text import shown

__all__ = ["ANYWHERE", "HERE", "Expected", "Node", "NodePlan", "Placement", "Plan", "here"]

HERE = "here"
"""The name of the node if there is only one machine; where there are others, any of them."""
ANYWHERE = ""
"""What a host is told instead of a node that it is to choose."""

Placement: TypeAlias = Mapping[str, Mapping[str, int]]
"""Processors by operator and node."""


@dataclass(frozen=True, slots=True)
class Node:
    """A machine for processors; what is None is not known."""

    name: str
    cores: float | None = None
    memory_bytes: int | None = None
    price_per_hour: float | None = None
    reads: bool = False
    """Whether it reads from outside, and can leave only when it has ended that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePlan:
    """How many nodes there should be, and which are given back.

    >>> plan = NodePlan(number=1, given_back=("node-2",))
    >>> [node.name for node in plan.staying([Node("node-1"), Node("node-2")])]
    ['node-1']
    """

    number: int
    """Nodes in all, without those that are given back."""
    given_back: tuple[str, ...] = ()
    """Nodes that leave as soon as they have no processors."""
    reason: str = field(default="", compare=False)
    """Why it was changed last."""

    def staying(self, nodes: Iterable[Node]) -> list[Node]:
        """Return those of *nodes* that are not given back."""
        return [node for node in nodes if node.name not in self.given_back]


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """The prediction at the time of a decision, kept to compare it with measurements.

    *seconds* is the *statistic* of the target at a load of *arrivals_per_s*, *sojourns_s* are
    the mean times a record waits and is served at each operator.
    """

    statistic: str
    seconds: float
    arrivals_per_s: float
    sojourns_s: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The processors of each operator on each node, the reason, and the prediction.

    *admission* is the part of an arrival's records that is admitted, if not all. *nodes* are
    those to ask for and to give back; None leaves them as they are. Plans are equal if the same
    processors run on the same nodes, whatever the reason.

    >>> plan = Plan(placement={"split": {"node-1": 2, "node-2": 1}, "count": {"node-2": 4}})
    >>> plan.allocation, plan.processors
    ({'split': 3, 'count': 4}, 7)
    >>> Plan.here({"split": 3}, reason="too slow") == Plan.here({"split": 3})
    True

    Raise `BadAllocation` if an operator has no processor, or a number is not valid.

    >>> Plan.here({"split": 0})
    Traceback (most recent call last):
    ...
    sojourn.errors.BadAllocation: split has no processor; give it 1 or more
    """

    placement: Placement
    admission: Mapping[str, float] = field(default_factory=dict)
    nodes: NodePlan | None = None
    reason: str = field(default="", compare=False)
    expected: Expected | None = field(default=None, compare=False)
    allocation: Mapping[str, int] = field(init=False, repr=False, compare=False)
    """Processors per operator."""

    def __post_init__(self) -> None:
        for arrival, part in self.admission.items():
            if not 0 <= part <= 1:
                raise BadAllocation(
                    f"admission of {arrival} is {shown(part)}; write a number from 0 to 1"
                )
        # nodes without processors are left out
        placement = {
            operator: {node: int(k) for node, k in on.items() if _checked(operator, node, k)}
            for operator, on in self.placement.items()
        }
        allocation = {operator: sum(on.values()) for operator, on in placement.items()}
        for operator, k in allocation.items():
            if k < 1:
                raise BadAllocation(f"{operator} has no processor; give it 1 or more")
        object.__setattr__(self, "placement", placement)
        # cached, because policies read it for every operator and turn
        object.__setattr__(self, "allocation", allocation)

    @classmethod
    def here(
        cls,
        allocation: Mapping[str, int],
        *,
        reason: str = "",
        expected: Expected | None = None,
    ) -> "Plan":
        """Return the plan with these processors on one machine.

        >>> Plan.here({"split": 3, "count": 4}).placement
        {'split': {'here': 3}, 'count': {'here': 4}}
        """
        return cls(placement=here(allocation), reason=reason, expected=expected)

    @property
    def processors(self) -> int:
        """The number of processors of all operators."""
        return sum(self.allocation.values())

    def __str__(self) -> str:
        """Return the processors in the order of the topology, such as 10:11:1."""
        return ":".join(map(str, self.allocation.values()))

    def changes(self, after: "Plan") -> dict[str, tuple[int, int]]:
        """Return the processors now and *after*, for the operators that change.

        >>> Plan.here({"split": 3, "count": 4}).changes(Plan.here({"split": 5, "count": 4}))
        {'split': (3, 5)}
        """
        now = self.allocation
        return {name: (now[name], k) for name, k in after.allocation.items() if now[name] != k}


def here(allocation: Mapping[str, int]) -> Placement:
    """Return the placement of these processors on one machine."""
    return {operator: {HERE: processors} for operator, processors in allocation.items()}


def _checked(operator: str, node: str, processors: int) -> bool:
    """Tell whether *processors* is above 0; it may be a number of numpy."""
    number = isinstance(processors, Integral) and not isinstance(processors, bool)
    if not number or processors < 0:
        raise BadAllocation(
            f"{operator}: {shown(processors)} is not a valid number of processors on {node}; "
            "write 0 or more"
        )
    return processors > 0

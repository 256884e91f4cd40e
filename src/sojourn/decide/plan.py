"""A plan: processors on nodes. Policy, loop, engine and history use it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from numbers import Integral
from typing import TypeAlias

from sojourn.errors import BadAllocation
from sojourn.text import shown

HERE = "here"
"""The node of a single machine; on a cluster, any node."""
ANYWHERE = ""
"""In place of a node's name: the host chooses the node."""

Placement: TypeAlias = Mapping[str, Mapping[str, int]]
"""Processors by operator and node."""


@dataclass(frozen=True, slots=True)
class Node:
    """A machine for processors; None means unknown."""

    name: str
    cores: float | None = None
    memory_bytes: int | None = None
    price_per_hour: float | None = None
    reads: bool = False
    """Whether it reads from a source; it must finish that before it can leave."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePlan:
    """The wanted number of nodes, and the nodes to release.

    >>> plan = NodePlan(number=1, given_back=("node-2",))
    >>> [node.name for node in plan.staying([Node("node-1"), Node("node-2")])]
    ['node-1']
    """

    number: int
    """Number of nodes, without those that are given back."""
    given_back: tuple[str, ...] = ()
    """Nodes that leave as soon as they have no processors."""
    reason: str = field(default="", compare=False)
    """The reason for the last change."""

    def staying(self, nodes: Iterable[Node]) -> list[Node]:
        return [node for node in nodes if node.name not in self.given_back]


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """The prediction at the time of a decision, for comparison with later measurements."""

    statistic: str
    """The statistic of the target: `mean`, or a percentile."""
    seconds: float
    """The predicted value of the statistic."""
    arrivals_per_s: float
    """The load that it was predicted for."""
    sojourns_s: Mapping[str, float] = field(default_factory=dict)
    """Mean sojourn time at each operator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The processors of each operator on each node, the reason, and the prediction.

    Reason and prediction do not count when plans are compared.

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
    """The admitted part of the records of an arrival, if not all are admitted."""
    nodes: NodePlan | None = None
    """Nodes to request and to release; None changes nothing."""
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
        # computed once, because policies read it for every operator in every turn
        object.__setattr__(self, "allocation", allocation)

    @classmethod
    def here(
        cls,
        allocation: Mapping[str, int],
        *,
        reason: str = "",
        expected: Expected | None = None,
    ) -> "Plan":
        """Return the plan with all processors on one machine.

        >>> Plan.here({"split": 3, "count": 4}).placement
        {'split': {'here': 3}, 'count': {'here': 4}}
        """
        return cls(placement=here(allocation), reason=reason, expected=expected)

    @property
    def processors(self) -> int:
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
    """Return the placement of all processors on one machine."""
    return {operator: {HERE: processors} for operator, processors in allocation.items()}


def _checked(operator: str, node: str, processors: int) -> bool:
    """Return whether *processors*, perhaps a numpy integer, is above 0.

    Raise `BadAllocation` if it is not a whole number, or negative.
    """
    number = isinstance(processors, Integral) and not isinstance(processors, bool)
    if not number or processors < 0:
        raise BadAllocation(
            f"{operator}: {shown(processors)} is not a valid number of processors on {node}; "
            "write 0 or more"
        )
    return processors > 0

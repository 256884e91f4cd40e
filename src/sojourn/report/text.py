"""Numbers, times, allocations and costs formatted for users."""

from collections.abc import Callable, Iterable, Mapping
from math import inf, isfinite

from sojourn.decide.objective import percent
from sojourn.knowledge import allocation_text
from sojourn.measure.node_costs import Bill, NodeCosts
from sojourn.service.status import ObjectiveStatus

_UNITS = ((1.0, "s", 1.0), (1e-3, "ms", 1e3), (0.0, "µs", 1e6))
# With more operators, only the sum of processors is shown.
_MOST_OPERATORS = 8


def duration(seconds: float) -> str:
    """Return *seconds* in a suitable unit.

    >>> duration(0.0123), duration(2.5), duration(float("inf"))
    ('12.3 ms', '2.5 s', 'never')
    """
    if seconds == inf:
        return "never"
    unit, factor = next((u, f) for least_s, u, f in _UNITS if abs(seconds) >= least_s)
    return f"{seconds * factor:.4g} {unit}"


def clock(seconds: float) -> str:
    """Return *seconds* as hours, minutes and seconds.

    >>> clock(3725), clock(2 * 86400 + 5)
    ('1:02:05', '48:00:05')
    """
    if not isfinite(seconds):
        return "?"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"


def number(value: float) -> str:
    return f"{value:.4g}"


def extent(values: Iterable[float], said: Callable[[float], str] = number) -> str:
    """Return the range of the finite *values*; "" if there are none.

    >>> extent([2, float("nan"), 3]), extent([2, 2]), extent([])
    ('2 to 3', '2', '')
    """
    known = [value for value in values if isfinite(value)]
    if not known:
        return ""
    low, high = said(min(known)), said(max(known))
    return low if low == high else f"{low} to {high}"


def sequence(values: Iterable[object]) -> str:
    """Return the distinct *values* in the order in which they first occur.

    >>> sequence(["p95", "mean", "p95"])
    'p95, then mean'
    """
    return ", then ".join(dict.fromkeys(map(str, values)))


def processors_text(allocation: Mapping[str, int]) -> str:
    """Return the processors of each operator, or the sum if there are many operators."""
    if len(allocation) > _MOST_OPERATORS:
        return str(sum(allocation.values()))
    return allocation_text(allocation)


def objective_text(objective: ObjectiveStatus) -> str:
    """Return the slices that kept the target, and the level, in words.

    >>> objective_text(ObjectiveStatus(slice_s=60, kept=0.99, judged=200, missed=1, level=0.05))
    '199 of 200 slices of 60 s, 99% are required; plans are for 5% more load'
    """
    slices = f"slices of {duration(objective.slice_s)}"
    less = "less" if objective.level < 0 else "more"
    plans = f"plans are for {abs(objective.level):.0%} {less} load"
    asked = f"{percent(objective.kept)} are required; {plans}"
    if objective.judged == 0:
        return f"no {slices} yet, {asked}"
    kept = objective.judged - objective.missed
    if objective.left is not None:
        asked += f"; {_left(objective.left)}"
    if objective.burn_rates:
        rates = ", ".join(
            f"{rate:.2g} in {name}" for name, rate in objective.burn_rates.items()
        )
        asked += f"; burn rate {rates}"
    causes = "".join(f"; {n} missed because {cause}" for cause, n in objective.excused.items())
    return f"{kept} of {objective.judged} {slices}, {asked}{causes}"


def _left(slices: int) -> str:
    """Return how many slices may still be missed.

    >>> _left(12), _left(-3)
    ('12 more may be missed within 24 h', '3 too many were missed within 24 h')
    """
    what = "more may be" if slices >= 0 else "too many were"
    return f"{abs(slices)} {what} missed within 24 h"


def bill_text(bill: Bill) -> str:
    """Return the cost of all nodes so far.

    >>> bill_text(Bill.of(5400.0, 0.5))
    '0.75 so far: 1.5 node-hours at 0.5'
    """
    hours, price = bill.node_hours, bill.price_per_hour
    return f"{bill.cost:.4g} so far: {hours:.4g} node-hours at {price:g}"


def node_costs_text(costs: NodeCosts) -> str:
    """Return the time to add and to remove a node; empty if neither is known.

    >>> node_costs_text(NodeCosts(adding_s=4.8, removing_s=1.1))
    'adding a node takes 4.8 s, removing one 1.1 s'
    >>> node_costs_text(NodeCosts(removing_s=1.1))
    'removing a node takes 1.1 s'
    """
    told: list[str] = []
    for verb, took_s in (("adding", costs.adding_s), ("removing", costs.removing_s)):
        if took_s is not None:
            told.append(f"{verb} {'one' if told else 'a node takes'} {duration(took_s)}")
    return ", ".join(told)

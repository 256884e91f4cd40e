"""A bill in words."""

from sojourn.measure.bill import Bill

__all__ = ["bill_text"]


def bill_text(bill: Bill) -> str:
    """Return what nodes have cost so far.

    >>> bill_text(Bill.of(5400.0, 0.5))
    '0.75 so far: 1.5 node-hours at 0.5'
    """
    hours, price = bill.node_hours, bill.price_per_hour
    return f"{bill.cost:.4g} so far: {hours:.4g} node-hours at {price:g}"

"""An application for several nodes: a state by key, a plain sink and a deduplicated one.

The expected results are known: each customer with the numbers from 1 to its last order.
"""

import json
import time
from collections import Counter
from itertools import count as numbers

import sojourn as sj
from sojourn_trial.kills.ledger import compare, written

SERVICE_S, KEYS = 0.05, 20

app = sj.App("cut-orders")
orders = app.source(
    "orders",
    schema="customer string",
    samples=lambda _random: ((f"customer-{number % KEYS}",) for number in numbers()),
)


@app.operator(reads=orders, emits="customer string", service_s=SERVICE_S, sends=1.0)
def check(customer):
    """Take `SERVICE_S`."""
    time.sleep(SERVICE_S)
    yield (customer,)


@app.operator(
    reads=check.by("customer"), emits="customer string, n long", state={"n": 0}, service_s=0.001
)
def count(state, customer):
    """Count a customer's orders."""
    state["n"] += 1
    yield customer, state["n"]


app.sink(count)
app.sink(count, name="once", deduplicate=True)

PLAIN, ONCE = app.topic("count"), app.topic("once")
"""The topics of the two sinks."""


def outcome(servers, topic):
    """Compare the counts in *topic* with the orders that were sent."""
    due = Counter(
        json.loads(each)["customer"] for each in written(servers, app.topic("orders"))
    )
    expected = [(key, n + 1) for key, number in due.items() for n in range(number)]
    return compare(
        expected, (tuple(json.loads(each).values()) for each in written(servers, topic))
    )

"""An application for several nodes: orders are checked, then counted by key.

A check occupies its processor, but uses no CPU, so many fit on one machine.
"""

import random
import time
from itertools import count as numbers

import sojourn as sj

SERVICE_S, KEYS = 0.3, 50

app = sj.App("orders")
orders = app.source(
    "orders",
    schema="customer string",
    samples=lambda _random: ((f"customer-{number % KEYS}",) for number in numbers()),
)


@app.operator(reads=orders, emits="customer string", service_s=SERVICE_S, sends=1.0)
def check(customer):
    """Take an exponentially distributed time."""
    time.sleep(random.expovariate(1 / SERVICE_S))
    yield (customer,)


@app.operator(
    reads=check.by("customer"), emits="customer string, n long", state={"n": 0}, service_s=0.001
)
def count(state, customer):
    """Count a customer's orders."""
    state["n"] += 1
    yield customer, state["n"]


app.sink(count)

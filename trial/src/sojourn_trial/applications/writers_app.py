"""Two parts write one stream, and a state is two more hops downstream: for trials with kills.

`quick` and `slow` read the same roots and write `alerts`. A projection with its own query and a
stateless part pass them on, and `count` counts them by key. The slow writer always lags behind
the quick one, and the window for deduplication of ids is very short.

The results depend only on the content of the records, so `expected` can compute them.
"""

import json
import time
from collections import Counter

import sojourn as sj

KEYS = 7
ALLOCATION = {"quick": 1, "slow": 2, "passed": 1, "count": 2}
_ALERT = "number long, key string, writer string"
_SLOW_S = 0.15

app = sj.App("writers", id_window=10)
roots = app.source("roots", schema="number long, key string")
alerts = app.stream("alerts", schema=_ALERT, durable=True)


def key_of(number):
    """Return the key of a root."""
    return f"k{number % KEYS}"


@app.operator(reads=roots, emits=alerts, service_s=1e-3)
def quick(number, key):
    """Emit an alert without delay."""
    yield number, key, "quick"


@app.operator(reads=roots, emits=alerts, service_s=_SLOW_S)
def slow(number, key):
    """Emit an alert after a delay, as if a model were queried."""
    time.sleep(_SLOW_S)
    yield number, key, "slow"


told = app.project(
    "told",
    reads=alerts,
    columns={"number": "number", "key": "key", "writer": "upper(writer)"},
    emits=_ALERT,
    durable=True,
    service_s=1e-4,
)


@app.operator(reads=told, emits=_ALERT, durable=True, service_s=1e-3)
def passed(number, key, writer):
    """Pass an alert on, as a stateless part."""
    yield number, key, writer


@app.operator(
    reads=passed.by("key"),
    emits={"counted": _ALERT, "totals": "key string, n long"},
    state={"n": 0, "sum": 0},
    sends={"counted": 1.0, "totals": 1.0},
    service_s=1e-3,
)
def count(state, number, key, writer):
    """Count alerts by key."""
    state["n"] += 1
    state["sum"] += number
    yield "counted", (number, key, writer)
    yield "totals", (key, state["n"])


app.sink(count["counted"])
app.sink(count["counted"], name="counted-once", deduplicate=True)
app.sink(count["totals"], name="totals-once", deduplicate=True)


def expected(entered):
    """Return the final content of each sink, given the roots that have *entered*."""
    counted = [(*root, writer) for root in entered for writer in ("QUICK", "SLOW")]
    numbers = Counter(key for _, key, _ in counted)
    totals = [(key, n) for key, most in numbers.items() for n in range(1, most + 1)]
    return {"counted": counted, "counted-once": counted, "totals-once": totals}


def expected_states(entered):
    """Return the final state of each key, by operator."""
    numbers, sums = Counter(), Counter()
    for number, key in entered:
        numbers[key] += 2
        sums[key] += 2 * number
    return {
        "count": {json.dumps([key]): {"n": n, "sum": sums[key]} for key, n in numbers.items()}
    }

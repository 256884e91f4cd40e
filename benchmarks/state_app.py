"""A state for each key, in a loop, behind another part: for kills and exact counts.

What becomes of a record follows from its content alone, so `expected` tells it beforehand.
"""

import json
import time
from collections import Counter

import sojourn as sj
from loop_app import drawn

AGAIN, SLOW = 0.3, 0.01
"""The shares of records that go round the loop, and that take longer than a batch."""
SLOW_S, WORK_S = 6.0, 0.002
KEYS = 12
ALLOCATION = {"enter": 2, "count": 6}

_RECORD = "number long, key string, round int"

app = sj.App("state")
roots = app.source("roots", schema="number long, key string")
again = app.stream("again", schema=_RECORD)


def key_of(number, turn=0):
    """Return the key of a record: half of them have one of two."""
    drawn_key = drawn(number, turn, "key")
    return f"k{int(drawn_key * 4)}" if drawn_key < 0.5 else f"k{int(drawn_key * KEYS)}"


def goes_on(number, turn):
    """Return whether a record goes round the loop once more."""
    return drawn(number, turn, "again") < AGAIN


def expected(entered):
    """Return what the sinks have in the end, of the roots that have *entered*."""
    counted = [
        (number, key_of(number, turn), turn)
        for number, _ in entered
        for turn in range(_turns(number))
    ]
    numbers = Counter(key for _, key, _ in counted)
    totals = [(key, n) for key, most in numbers.items() for n in range(1, most + 1)]
    return {"counted": counted, "counted-once": counted, "totals-once": totals}


def expected_states(entered):
    """Return the state of each key in the end, by the operator that keeps it."""
    records = expected(entered)["counted"]
    numbers = Counter(key for _, key, _ in records)
    sums = Counter()
    for number, key, _ in records:
        sums[key] += number
    return {
        "count": {json.dumps([key]): {"n": n, "sum": sums[key]} for key, n in numbers.items()}
    }


def _turns(number):
    turns = 1
    while goes_on(number, turns - 1):
        turns += 1
    return turns


@app.operator(reads=roots, emits=_RECORD, durable=True, sends=1.0, service_s=WORK_S)
def enter(number, key):
    """Let roots in: a part of its own, which writes again what was not committed."""
    yield number, key, 0


@app.operator(
    reads=[enter.by("key"), again.by("key")],
    emits={"counted": _RECORD, "totals": "key string, n long", "again": again},
    state={"n": 0, "sum": 0},
    sends={"counted": 1.0, "totals": 1.0, "again": AGAIN},
    service_s=WORK_S,
)
def count(state, _stream, record):
    """Count what comes by key, and send some of it round, with another key."""
    number, key, turn = record
    time.sleep(SLOW_S if drawn(number, turn, "slow") < SLOW else WORK_S)
    state["n"] += 1
    state["sum"] += number
    yield "counted", (number, key, turn)
    yield "totals", (key, state["n"])
    if goes_on(number, turn):
        yield "again", (number, key_of(number, turn + 1), turn + 1)


app.sink(count["counted"])
app.sink(count["counted"], name="counted-once", deduplicate=True)
app.sink(count["totals"], name="totals-once", deduplicate=True)

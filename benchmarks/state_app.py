"""A state for each key, in a loop, behind another part: for kills and exact counts.

What becomes of a record follows from its content alone, so `expected` tells it beforehand.
"""

import json
import time
from collections import Counter

import sojourn as sj
from loop_app import drawn

AGAIN, SLOW, REMINDED = 0.3, 0.01, 0.2
"""The shares of records that go round the loop, that take longer than a batch, and that ask
for a reminder."""
SLOW_S, WORK_S, REMIND_WITHIN_S = 6.0, 0.002, 15.0
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
    reminded = [
        (key, f"{number}/{turn}") for number, key, turn in counted if asks(number, turn)
    ]
    return {
        "counted": counted,
        "counted-once": counted,
        "totals-once": totals,
        "reminded-once": reminded,
    }


def asks(number, turn):
    """Return whether a record asks for a reminder."""
    return drawn(number, turn, "remind") < REMINDED


def expected_states(entered):
    """Return the state of each key in the end, by the operator that keeps it."""
    records = expected(entered)["counted"]
    numbers = Counter(key for _, key, _ in records)
    sums = Counter()
    for number, key, _ in records:
        sums[key] += number
    asked = Counter(key for number, key, turn in records if asks(number, turn))
    return {
        "count": {
            json.dumps([key]): {"n": n, "sum": sums[key], "reminded": asked[key]}
            for key, n in numbers.items()
        }
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
    emits={
        "counted": _RECORD,
        "totals": "key string, n long",
        "reminded": "key string, note string",
        "again": again,
    },
    state={"n": 0, "sum": 0, "reminded": 0},
    sends={"counted": 1.0, "totals": 1.0, "reminded": REMINDED, "again": AGAIN},
    service_s=WORK_S,
)
def count(state, _stream, record):
    """Count what comes by key, and send some of it round, with another key."""
    if state.reminded is not None:
        state["reminded"] += 1
        yield "reminded", (*record, state.reminded.note)
        return
    number, key, turn = record
    if asks(number, turn):
        after_s = REMIND_WITHIN_S * drawn(number, turn, "after")
        state.remind(after_s=after_s, note=f"{number}/{turn}")
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
app.sink(count["reminded"], name="reminded-once", deduplicate=True)

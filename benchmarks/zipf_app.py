"""As `state_app`, for many records: thousands of keys, some far more frequent than others.

Nothing waits or takes long, so that as many records as possible are under way at each kill.
"""

import json
from bisect import bisect
from collections import Counter
from itertools import accumulate

import sojourn as sj
from loop_app import drawn

AGAIN, REMINDED, KEYS = 0.1, 0.05, 10_000
"""The shares of records that go round the loop and that ask for a reminder, and the keys, by
Zipf's law."""
REMIND_WITHIN_S = 10.0
ALLOCATION = {"enter": 1, "count": 2}

_RECORD = "number long, key string, round int"
_SHARES = list(accumulate(1 / rank for rank in range(1, KEYS + 1)))

app = sj.App("zipf")
roots = app.source("roots", schema="number long, key string")
again = app.stream("again", schema=_RECORD)


def key_of(number, turn=0):
    """Return the key of a record: one in ten has the most frequent.

    >>> Counter(key_of(number) for number in range(1000)).most_common(2)
    [('k0', 95), ('k1', 45)]
    """
    return f"k{bisect(_SHARES, drawn(number, turn, 'key') * _SHARES[-1])}"


def goes_on(number, turn):
    """Return whether a record goes round the loop once more."""
    return drawn(number, turn, "again") < AGAIN


def asks(number, turn):
    """Return whether a record asks for a reminder."""
    return drawn(number, turn, "remind") < REMINDED


def _counted(entered):
    for number, _ in entered:
        turn = 0
        yield number, key_of(number), turn
        while goes_on(number, turn):
            turn += 1
            yield number, key_of(number, turn), turn


def expected(entered):
    """Return what the sinks have in the end, of the roots that have *entered*."""
    counted = list(_counted(entered))
    numbers = Counter(key for _, key, _ in counted)
    totals = [(key, n) for key, most in numbers.items() for n in range(1, most + 1)]
    reminded = [
        (key, f"{number}/{turn}") for number, key, turn in counted if asks(number, turn)
    ]
    return {"counted": counted, "totals-once": totals, "reminded-once": reminded}


def expected_states(entered):
    """Return the state of each key in the end, by the operator that keeps it."""
    numbers, sums, asked = Counter(), Counter(), Counter()
    for number, key, turn in _counted(entered):
        numbers[key] += 1
        sums[key] += number
        asked[key] += asks(number, turn)
    return {
        "count": {
            json.dumps([key]): {"n": n, "sum": sums[key], "reminded": asked[key]}
            for key, n in numbers.items()
        }
    }


@app.operator(reads=roots, emits=_RECORD, durable=True, sends=1.0, service_s=1e-4)
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
    service_s=1e-4,
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
    state["n"] += 1
    state["sum"] += number
    yield "counted", (number, key, turn)
    yield "totals", (key, state["n"])
    if goes_on(number, turn):
        yield "again", (number, key_of(number, turn + 1), turn + 1)


app.sink(count["counted"])
app.sink(count["totals"], name="totals-once", deduplicate=True)
app.sink(count["reminded"], name="reminded-once", deduplicate=True)

"""Two parts with a durable stream between them, for kills, rescales and exact counts.

The first part splits a root into records that go to the left or to the right and are joined
again, in two nested loops (`nested_app`). The second breaks each record up into at most four
pieces, some of which go round a third loop. A projection reads the results.

The results depend only on the content of the records, so `expected` can compute them.
"""

import time

import sojourn as sj
from sojourn_trial.applications import nested_app
from sojourn_trial.applications.loop_app import drawn
from sojourn_trial.applications.nested_app import (
    INNER,
    OUTER,
    SLOW,
    SLOW_S,
    WORK_S,
    parts,
    turn,
)

PIECES, AGAIN = 4, 0.2
"""The maximum number of pieces of a record, and the fraction that is checked again."""
ALLOCATION = {
    "enter": 2,
    "left_side": 4,
    "right_side": 4,
    "join": 2,
    "break_up": 2,
    "check": 4,
}

_RECORD = "number long, key string, part int, inner int, outer int"
_PIECE = f"{_RECORD}, piece int, round int"

app = sj.App("two-parts")
roots = app.source("roots", schema="number long, key string")
inner = app.stream("inner", schema=_RECORD)
outer = app.stream("outer", schema=_RECORD)
joined = app.stream("joined", schema=_RECORD, durable=True)
again = app.stream("again", schema=_PIECE)


def side(number, part):
    """Return the side on which a record goes from the split to the join."""
    return "left" if drawn("side", number, part) < 0.5 else "right"


def pieces(record):
    """Return the numbers of the pieces of a record."""
    return range(1 + int(drawn("pieces", *record) * PIECES))


def is_checked_again(piece):
    """Return whether a piece goes round the loop once more."""
    return drawn("again", *piece) < AGAIN


def expected(entered):
    """Return the final content of each sink, given the roots that have *entered*."""
    done = [
        _last((*record, piece, 0))
        for number, _ in entered
        for record in nested_app.results(number)
        for piece in pieces(record)
    ]
    return {
        "stamped": entered,
        "stamped-once": entered,
        "done": done,
        "done-once": done,
        "shown": [
            (number, key, 100 * part + piece) for number, key, part, *_, piece, _ in done
        ],
    }


def _last(piece):
    while is_checked_again(piece):
        piece = (*piece[:-1], piece[-1] + 1)
    return piece


@app.operator(
    reads=[roots.by("key"), outer.by("key")],
    emits={"left": _RECORD, "right": _RECORD, "stamped": "number long, key string"},
    sends={"left": 0.5, "right": 0.5, "stamped": 0.8},
    service_s=WORK_S,
)
def enter(stream, record):
    """Split a root, and emit it to a sink; pass on records of the outer loop."""
    time.sleep(WORK_S)
    if stream == "outer":
        yield side(record[0], record[2]), record
        return
    number, key = record
    yield "stamped", (number, key)
    for part in parts(number):
        yield side(number, part), (number, key, part, 0, 0)


@app.operator(
    reads=[enter["left"].by("key"), inner.by("key")], emits=_RECORD, service_s=10 * WORK_S
)
def left_side(_stream, record):
    """Take some time, occasionally more than a batch; the inner loop returns here."""
    time.sleep(SLOW_S if drawn("slow", *record) < SLOW else WORK_S)
    yield record


@app.operator(reads=enter["right"], emits=_RECORD, service_s=WORK_S)
def right_side(*record):
    """Take little time, unlike the left side."""
    time.sleep(WORK_S)
    yield record


@app.operator(
    reads=[left_side.by("key"), right_side.by("key")],
    emits={"inner": inner, "outer": outer, "joined": joined},
    sends={"inner": INNER, "outer": OUTER, "joined": 1 - INNER - OUTER},
    service_s=WORK_S,
)
def join(_stream, record):
    """Send a record round a loop, or to the second part."""
    time.sleep(WORK_S)
    way, then = turn(record)
    yield ("joined" if way == "done" else way), then


@app.operator(reads=joined.by("key"), emits=_PIECE, sends=(1 + PIECES) / 2, service_s=WORK_S)
def break_up(*record):
    """Break a record up into pieces."""
    time.sleep(WORK_S)
    for piece in pieces(record):
        yield (*record, piece, 0)


@app.operator(
    reads=[break_up, again],
    emits={"again": again, "done": _PIECE},
    sends={"again": AGAIN, "done": 1 - AGAIN},
    service_s=WORK_S,
)
def check(_stream, piece):
    """Send a piece to the sink, or round the loop once more."""
    time.sleep(WORK_S)
    if is_checked_again(piece):
        yield "again", (*piece[:-1], piece[-1] + 1)
    else:
        yield "done", piece


shown = app.project(
    "shown",
    reads=check["done"],
    columns={"number": "number", "key": "key", "place": "100 * part + piece"},
    service_s=1e-4,
)

app.sink(enter["stamped"])
app.sink(enter["stamped"], name="stamped-once", deduplicate=True)
app.sink(check["done"])
app.sink(check["done"], name="done-once", deduplicate=True)
app.sink(shown)

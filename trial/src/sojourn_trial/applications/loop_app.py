"""An application with a split, a join, a loop and a broadcast, for `spark_loop.py`.

What becomes of a record follows from its content alone, so it can be told beforehand.
"""

import time
from hashlib import blake2b

import sojourn as sj

BACK = 0.3
"""The share of records that the join sends back."""
TWICE = 0.5
"""The share of roots that go to the right twice."""
WORK_S = 0.002

_RECORD = "number long, path string, depth int, photo binary"

app = sj.App("loop")
roots = app.source("roots", schema="number long, photo binary")
again = app.stream("again", schema=_RECORD)


def drawn(*content):
    """Return a number from 0 to 1 that only the content decides."""
    digest = blake2b(repr(content).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64


def paths(number):
    """Return the ways on which a root goes from the split to the join."""
    return ["left", "right", "twice"] if drawn(number) < TWICE else ["left", "right"]


def goes_back(number, path, depth):
    """Tell whether the join sends a record back."""
    return drawn(number, path, depth) < BACK


@app.operator(
    reads=roots,
    emits={"left": _RECORD, "right": _RECORD},
    sends={"left": 1.0, "right": 1.0 + TWICE},
    service_s=WORK_S,
)
def split(number, photo):
    """Send a root both ways, and some twice to the right."""
    time.sleep(WORK_S)
    for path in paths(number):
        yield ("left" if path == "left" else "right"), (number, path, 0, photo)


@app.operator(reads=[split["left"], again], emits=_RECORD, service_s=WORK_S)
def left_side(_stream, record):
    """Pass on what comes from the split, and what comes back."""
    time.sleep(WORK_S)
    yield record


@app.operator(reads=split["right"], emits=_RECORD, service_s=WORK_S)
def right_side(number, path, depth, photo):
    """Pass on."""
    time.sleep(WORK_S)
    yield number, path, depth, photo


@app.operator(
    reads=[left_side, right_side],
    emits={"again": again, "done": _RECORD},
    sends={"again": BACK, "done": 1 - BACK},
    service_s=WORK_S,
)
def join(_stream, record):
    """Let a record go, or send it back, one level deeper."""
    time.sleep(WORK_S)
    number, path, depth, photo = record
    if goes_back(number, path, depth):
        yield "again", (number, path, depth + 1, photo)
    else:
        yield "done", record


@app.operator(reads=split["left"].broadcast(), emits="number long", service_s=WORK_S)
def audit(number, _path, _depth, _photo):
    """Note the roots, at every processor."""
    time.sleep(WORK_S)
    yield (number,)


app.sink(join["done"])
app.sink(audit)

"""An application with a split, a join, a loop and a broadcast, for `spark_loop.py`.

The results depend only on the content of the records, so they can be computed in advance.
"""

import time
from hashlib import blake2b

import sojourn as sj

BACK = 0.3
"""The fraction of records that the join sends back."""
TWICE = 0.5
"""The fraction of roots that the split sends to the right twice."""
WORK_S = 0.002

_RECORD = "number long, path string, depth int, photo binary"

app = sj.App("loop")
roots = app.source("roots", schema="number long, photo binary")
again = app.stream("again", schema=_RECORD)


def drawn(*content):
    """Return a pseudo-random number from 0 to 1 that depends only on the content."""
    digest = blake2b(repr(content).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64


def paths(number):
    """Return the paths of a root from the split to the join."""
    return ["left", "right", "twice"] if drawn(number) < TWICE else ["left", "right"]


def goes_back(number, path, depth):
    """Return whether the join sends a record back."""
    return drawn(number, path, depth) < BACK


@app.operator(
    reads=roots,
    emits={"left": _RECORD, "right": _RECORD},
    sends={"left": 1.0, "right": 1.0 + TWICE},
    service_s=WORK_S,
)
def split(number, photo):
    """Send a root to both sides, and some roots to the right twice."""
    time.sleep(WORK_S)
    for path in paths(number):
        yield ("left" if path == "left" else "right"), (number, path, 0, photo)


@app.operator(reads=[split["left"], again], emits=_RECORD, service_s=WORK_S)
def left_side(_stream, record):
    """Pass on records from the split and from the join."""
    time.sleep(WORK_S)
    yield record


@app.operator(reads=split["right"], emits=_RECORD, service_s=WORK_S)
def right_side(number, path, depth, photo):
    """Pass on records from the split."""
    time.sleep(WORK_S)
    yield number, path, depth, photo


@app.operator(
    reads=[left_side, right_side],
    emits={"again": again, "done": _RECORD},
    sends={"again": BACK, "done": 1 - BACK},
    service_s=WORK_S,
)
def join(_stream, record):
    """Send a record back, one level deeper, or to the sink."""
    time.sleep(WORK_S)
    number, path, depth, photo = record
    if goes_back(number, path, depth):
        yield "again", (number, path, depth + 1, photo)
    else:
        yield "done", record


@app.operator(reads=split["left"].broadcast(), emits="number long", service_s=WORK_S)
def audit(number, _path, _depth, _photo):
    """Emit the number of each root, at every processor."""
    time.sleep(WORK_S)
    yield (number,)


app.sink(join["done"])
app.sink(audit)

"""Small applications for `spark_cases.py`, whose results depend only on the input.

`open_roots`: some records take seven batches of 5 s. `idle`: two sources, one of which may be
idle. `fan_out`: a field of the root determines the number of records derived from it.
"""

import time

import sojourn as sj

LONG_S, WORK_S, LONG_EVERY = 35.0, 0.01, 5
"""One record of every fifth root takes `LONG_S`; all others take `WORK_S`."""

_HALF = "number long, half int"
_PIECE = "number long, place long"

open_roots = sj.App("open")
idle = sj.App("idle")
fan_out = sj.App("fan-out")


def is_long(number, half):
    """Return whether a record takes several batches."""
    return number % LONG_EVERY == 0 and half == 1


@open_roots.operator(
    reads=open_roots.source("roots", schema="number long"),
    emits=_HALF,
    sends=2,
    service_s=WORK_S,
)
def halve(number):
    """Derive two records from a root, which complete at different times."""
    yield number, 0
    yield number, 1


@open_roots.operator(reads=halve, emits=_HALF, service_s=LONG_S / (2 * LONG_EVERY))
def linger(number, half):
    """Take seven batches, or hardly any time."""
    time.sleep(LONG_S if is_long(number, half) else WORK_S)
    yield number, half


open_roots.sink(linger)
open_roots.sink(linger, name="linger-once", deduplicate=True)


@idle.operator(
    reads=[
        idle.source("busy", schema="number long"),
        idle.source("quiet", schema="number long"),
    ],
    emits="source string, number long",
    service_s=1e-3,
)
def merge(stream, record):
    """Add the source to the record."""
    yield stream, record[0]


@idle.operator(reads=merge, emits="source string, number long", service_s=1e-3)
def pass_on(source, number):
    """Emit the record unchanged."""
    yield source, number


idle.sink(pass_on)


@fan_out.operator(
    reads=fan_out.source("roots", schema="number long, width long"),
    emits=_PIECE,
    service_s=0.1,
    sends=1000,
    on_error="dead_letter",
)
def spread(number, width):
    """Emit *width* records."""
    for place in range(width):
        yield number, place


@fan_out.operator(reads=spread, emits=_PIECE, service_s=1e-4)
def keep(number, place):
    """Emit the record unchanged."""
    yield number, place


fan_out.sink(keep)
fan_out.sink(keep, name="keep-once", deduplicate=True)

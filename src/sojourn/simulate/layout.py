"""How the simulated world lies in memory: arrays of small records, for compiled code."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "ENTRY",
    "KEY",
    "OPERATOR",
    "RATE",
    "RECORD",
    "ROOT",
    "SLOT",
    "STREAM",
    "TARGET",
    "WRITTEN_ROOT",
    "Tally",
    "World",
]

# One record in flight. Records that are not in use, and those in a queue, are linked by `next`.
RECORD = np.dtype(
    [
        ("sent_s", "f8"),
        ("queued_s", "f8"),
        ("started_s", "f8"),
        ("root", "i8"),
        ("operator", "i8"),
        ("slot", "i8"),
        ("key", "i8"),
        ("next", "i8"),
    ]
)
# One root in flight: `open` counts the records of its tree that are not done yet.
ROOT = np.dtype([("birth_s", "f8"), ("sum_s", "f8"), ("open", "i8"), ("next", "i8")])
WRITTEN_ROOT = np.dtype([("birth_s", "f8"), ("completion_s", "f8"), ("sum_s", "f8")])

# An operator: where its slots, targets, measured service times and keys lie in their arrays,
# how it serves (`a`, `b`, `c` are the parameters of the service time), and its processors.
OPERATOR = np.dtype(
    [
        ("service", "i8"),
        ("a", "f8"),
        ("b", "f8"),
        ("c", "f8"),
        ("first_slot", "i8"),
        ("slots", "i8"),
        ("dispatch", "i8"),
        ("turn", "i8"),
        ("processors", "i8"),
        ("surplus", "i8"),
        ("idle", "i8"),
        ("paused_until_s", "f8"),
        ("wire_s", "f8"),
        ("one_of", "i8"),
        ("spread", "i8"),
        ("first_target", "i8"),
        ("end_target", "i8"),
        ("first_sample", "i8"),
        ("end_sample", "i8"),
        ("first_key", "i8"),
        ("end_key", "i8"),
    ]
)
# A place for a processor: its state, its queue (of a shared one, that of the first slot), an
# entry of the operator's stack of idle slots, what it counted since the last look, and how
# many it served since it timed one: a look must not make it begin anew, or only processors
# with many short times between two looks would time any.
SLOT = np.dtype(
    [
        ("state", "i8"),
        ("head", "i8"),
        ("tail", "i8"),
        ("length", "i8"),
        ("idle", "i8"),
        ("served", "i8"),
        ("sampled", "i8"),
        ("service_s", "f8"),
        ("service_ss", "f8"),
        ("wait_s", "f8"),
        ("wait_ss", "f8"),
        ("untimed", "i8"),
    ]
)
TARGET = np.dtype([("operator", "i8"), ("mean", "f8")])
ENTRY = np.dtype([("operator", "i8"), ("share", "f8")])
# A stream from outside: how its gaps are drawn, and where it is on its way through its rates.
STREAM = np.dtype(
    [
        ("gaps", "i8"),
        ("a", "f8"),
        ("b", "f8"),
        ("left", "f8"),
        ("at_s", "f8"),
        ("first_entry", "i8"),
        ("end_entry", "i8"),
        ("rate", "i8"),
        ("end_rate", "i8"),
    ]
)
# From `at_s` on the rate goes in a straight line to the next one.
RATE = np.dtype([("at_s", "f8"), ("per_s", "f8")])
# Keys by the alias method: this one with `chance`, otherwise `other`.
KEY = np.dtype([("chance", "f8"), ("other", "i8")])


class Tally:
    """Entries of `World.tally`."""

    EVENTS, FREE_RECORD, FREE_ROOT, RECORDS, ROOTS, WRITTEN, DONE, VISITS = range(8)


class World(NamedTuple):
    """All arrays of a simulation. Only `clock_s` and `tally` hold single numbers."""

    clock_s: NDArray[np.float64]
    tally: NDArray[np.int64]
    event_s: NDArray[np.float64]
    event: NDArray[np.int64]
    records: NDArray[np.void]
    roots: NDArray[np.void]
    operators: NDArray[np.void]
    slots: NDArray[np.void]
    targets: NDArray[np.void]
    streams: NDArray[np.void]
    entries: NDArray[np.void]
    rates: NDArray[np.void]
    keys: NDArray[np.void]
    samples_s: NDArray[np.float64]
    # arrivals per operator in time bins; `window` is where they begin and how wide they are
    arrived: NDArray[np.int64]
    window: NDArray[np.float64]
    written: NDArray[np.void]
    children: NDArray[np.int64]
    sample_every: NDArray[np.int64]

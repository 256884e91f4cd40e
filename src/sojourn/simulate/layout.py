"""Memory layout of the simulated world: structured arrays for compiled code."""

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
    "TallyIndex",
    "World",
]


def _dtype(floats: str, integers: str) -> np.dtype[np.void]:
    """Return the type of a record with these fields, given as names separated by spaces."""
    names = [*floats.split(), *integers.split()]
    kinds = ["f8"] * len(floats.split()) + ["i8"] * len(integers.split())
    return np.dtype(list(zip(names, kinds, strict=True)))


# One record in flight. Unused records, and those in a queue, are linked by `next`. `key` is the
# key for dispatch. At operators with a hottest key it is the position in the order of arrival
# instead, negative for records of that key.
RECORD = _dtype("sent_s queued_s started_s", "root operator slot key next")
# One root in flight: `open` counts the records of its tree that are not served yet.
ROOT = _dtype("birth_s sum_s", "open next")
WRITTEN_ROOT = _dtype("birth_s completion_s sum_s", "")
# An operator: its service time (with parameters `a`, `b`, `c`), its processors, and the ranges
# of its slots, targets, measured service times and keys in their arrays. Records of the hottest
# key, a part `hottest` of all, wait in a queue of their own while one of them is in service
# (`hot_busy`); `hot_arrived` counts them since the last look.
OPERATOR = _dtype(
    "a b c paused_until_s wire_s hottest",
    "service dispatch turn one_of spread processors surplus idle first_slot slots "
    "first_target end_target first_sample end_sample first_key end_key "
    "hot_busy hot_head hot_tail hot_length hot_arrived",
)
# A slot for a processor: its state, its queue (a shared queue belongs to the first slot), an
# entry of the operator's stack of idle slots, its counters since the last look, and `untimed`,
# the records served since it last timed one. A look must not reset `untimed`, or processors
# that serve few records between two looks would never time one.
SLOT = _dtype(
    "service_s service_ss wait_s wait_ss",
    "state head tail length idle served sampled untimed",
)
TARGET = _dtype("mean", "operator")
ENTRY = _dtype("share", "operator")
# A stream from outside: the distribution of its gaps, and its position in its rates.
STREAM = _dtype("a b left at_s", "gaps first_entry end_entry rate end_rate")
# A point of a rate, which is linear from here to the next point.
RATE = _dtype("at_s per_s", "")
# An entry of the alias method: this key with probability `chance`, otherwise `other`.
KEY = _dtype("chance", "other")


class TallyIndex:
    """Indices of the single counters in `World.tally`."""

    EVENTS, FREE_RECORD, FREE_ROOT, RECORDS, ROOTS, WRITTEN, DONE, VISITS = range(8)


class World(NamedTuple):
    """All arrays of a simulation."""

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
    # arrivals per operator in time bins; `window` is the start of the bins and their width
    arrived: NDArray[np.int64]
    window: NDArray[np.float64]
    written: NDArray[np.void]
    children: NDArray[np.int64]
    sample_every: NDArray[np.int64]

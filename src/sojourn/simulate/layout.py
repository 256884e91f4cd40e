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
    "TallyIndex",
    "World",
]


def _dtype(floats: str, integers: str) -> np.dtype[np.void]:
    """Return a record with these fields."""
    names = [*floats.split(), *integers.split()]
    kinds = ["f8"] * len(floats.split()) + ["i8"] * len(integers.split())
    return np.dtype(list(zip(names, kinds, strict=True)))


# One record in flight. Records that are not in use, and those in a queue, are linked by `next`.
# `key` is what a record is dispatched by. Where the hottest key is told, it is the place in the
# order of arrival instead, below 0 for records of that key.
RECORD = _dtype("sent_s queued_s started_s", "root operator slot key next")
# One root in flight: `open` counts the records of its tree that are not done yet.
ROOT = _dtype("birth_s sum_s", "open next")
WRITTEN_ROOT = _dtype("birth_s completion_s sum_s", "")
# An operator: how it serves (`a`, `b`, `c` are the parameters of the service time), its
# processors, and where its slots, targets, measured service times and keys lie in their arrays.
# Records of the hottest key, a part `hottest` of all, wait in a queue of their own while one of
# them is in service (`hot_busy`); `hot_arrived` counts them since the last look.
OPERATOR = _dtype(
    "a b c paused_until_s wire_s hottest",
    "service dispatch turn one_of spread processors surplus idle first_slot slots "
    "first_target end_target first_sample end_sample first_key end_key "
    "hot_busy hot_head hot_tail hot_length hot_arrived",
)
# A place for a processor: its state, its queue (of a shared one, that of the first slot), an
# entry of the operator's stack of idle slots, what it counted since the last look, and how
# many it served since it timed one: a look must not make it begin anew, or only processors
# with many short times between two looks would time any.
SLOT = _dtype(
    "service_s service_ss wait_s wait_ss",
    "state head tail length idle served sampled untimed",
)
TARGET = _dtype("mean", "operator")
ENTRY = _dtype("share", "operator")
# A stream from outside: how its gaps are drawn, and where it is on its way through its rates.
STREAM = _dtype("a b left at_s", "gaps first_entry end_entry rate end_rate")
# From `at_s` on the rate goes in a straight line to the next one.
RATE = _dtype("at_s per_s", "")
# Keys by the alias method: this one with `chance`, otherwise `other`.
KEY = _dtype("chance", "other")


class TallyIndex:
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

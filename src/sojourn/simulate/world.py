"""The simulated world: arrays for compiled code, and changes between two runs of its loop.

Arrays grow with the records in flight, processors are added and removed, and operators pause.
"""

from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from sojourn.simulate import draws
from sojourn.simulate.kernel import EVENTS, RECORDS, ROOTS, WAKE, push

T = TypeVar("T", bound=np.generic)


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


class World(NamedTuple):
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


def with_room(world: World, room: int) -> World:
    """Return the world with arrays of at least twice the used length, and *room* to spare.

    The arrays of events also have room for one event of each processor.
    """

    def longer(array: NDArray[T], used: int, room: int = room) -> NDArray[T]:
        size = max(2 * used, used + 2 * room, len(array))
        grown = np.zeros(size, array.dtype)
        grown[: len(array)] = array
        if array.dtype.names:
            # Link the added entries into the free list. The last free entry of the old array
            # already points one past its end, which is the first added entry.
            grown["next"][len(array) :] = np.arange(len(array) + 1, size + 1)
        return grown

    tally, event_room = world.tally, room + len(world.slots)
    events = int(tally[EVENTS])
    return world._replace(
        records=longer(world.records, int(tally[RECORDS])),
        roots=longer(world.roots, int(tally[ROOTS])),
        event_s=longer(world.event_s, events, event_room),
        event=longer(world.event, events, event_room),
    )


def scheduled(world: World, at_s: float, what: int) -> World:
    """Return the world with an event added at a time.

    *what* is four times the index that the event concerns, plus its kind.
    """
    number = world.tally[EVENTS]
    if number == len(world.event_s):
        world = with_room(world, 1)
    world.tally[EVENTS] = push(world.event_s, world.event, number, at_s, what)
    return world


def resize(world: World, operator: int, processors: int) -> World:
    """Return the world in which *operator* has this many processors, or will soon.

    Busy processors finish their record before they leave. No record is lost: the queue of a
    processor that leaves is distributed over the others.
    """
    row = world.operators[operator]
    if processors > row["slots"]:
        world = _relocated(world, operator, max(processors, 2 * int(row["slots"])))
    if row["dispatch"] == draws.SHARED:
        _resize_shared(world, row, processors)
    else:
        _resize_dealt(world, row, processors)
    return scheduled(world, world.clock_s[0], 4 * operator + WAKE)


def pause(world: World, operator: int, seconds: float) -> World:
    """Return the world in which *operator* starts no service for some seconds.

    Records in service continue.
    """
    if not seconds > 0:
        return world
    until_s = world.clock_s[0] + seconds
    row = world.operators[operator]
    row["paused_until_s"] = max(row["paused_until_s"], until_s)
    return scheduled(world, until_s, 4 * operator + WAKE)


def _resize_shared(world: World, row: np.void, processors: int) -> None:
    change, row["processors"] = processors - row["processors"], processors
    while change > 0 and row["surplus"] > 0:  # first keep processors that were about to leave
        row["surplus"] -= 1
        change -= 1
    slots = world.slots[row["first_slot"] : row["first_slot"] + row["slots"]]
    for offset in np.flatnonzero(slots["state"] == draws.ABSENT)[: max(0, change)]:
        slots[offset]["state"] = draws.IDLE
        slots[row["idle"]]["idle"] = row["first_slot"] + offset
        row["idle"] += 1
    while change < 0 and row["idle"] > 0:
        row["idle"] -= 1
        world.slots[slots[row["idle"]]["idle"]]["state"] = draws.ABSENT
        change += 1
    row["surplus"] -= min(0, change)


def _resize_dealt(world: World, row: np.void, processors: int) -> None:
    """Change the processors of an operator that has one queue for each processor."""
    row["processors"] = processors
    slots = world.slots[row["first_slot"] : row["first_slot"] + row["slots"]]
    waiting = list[int]()
    for slot in slots:
        record = slot["head"]
        for _ in range(slot["length"]):
            waiting.append(int(record))
            record = world.records[record]["next"]
        slot["length"] = 0
    stays = np.arange(len(slots)) < processors
    slots["state"][stays & (slots["state"] == draws.ABSENT)] = draws.IDLE
    slots["state"][~stays & (slots["state"] == draws.IDLE)] = draws.ABSENT
    for record in sorted(waiting, key=lambda r: float(world.records[r]["queued_s"])):
        queue = world.slots[draws.queue_for(row, world.records[record]["key"], world.slots)]
        world.records[record]["next"] = draws.NOBODY
        if queue["length"] == 0:
            queue["head"] = record
        else:
            world.records[queue["tail"]]["next"] = record
        queue["tail"] = record
        queue["length"] += 1


def _relocated(world: World, operator: int, slots: int) -> World:
    """Return the world with the slots of one operator moved to the end, where they can grow."""
    row, end = world.operators[operator], len(world.slots)
    first, number = int(row["first_slot"]), int(row["slots"])
    grown = np.concatenate((world.slots, np.zeros(slots, SLOT)))
    grown[end : end + number] = world.slots[first : first + number]
    grown[end : end + number]["idle"] += end - first
    of_it = world.records["operator"] == operator
    world.records["slot"][of_it] += end - first
    row["first_slot"], row["slots"] = end, slots
    return world._replace(slots=grown)

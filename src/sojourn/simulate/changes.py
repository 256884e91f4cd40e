"""Changes of the simulated world between two runs of the compiled loop.

Arrays grow with the records in flight, processors are added and removed, and operators pause.
"""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from sojourn.simulate import draws
from sojourn.simulate.draws import NOBODY
from sojourn.simulate.kernel import WAKE, push
from sojourn.simulate.layout import SLOT, TallyIndex, World

__all__ = ["pause", "resize", "scheduled", "with_room"]

T = TypeVar("T", bound=np.generic)


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
    events = int(tally[TallyIndex.EVENTS])
    return world._replace(
        records=longer(world.records, int(tally[TallyIndex.RECORDS])),
        roots=longer(world.roots, int(tally[TallyIndex.ROOTS])),
        event_s=longer(world.event_s, events, event_room),
        event=longer(world.event, events, event_room),
    )


def scheduled(world: World, at_s: float, what: int) -> World:
    """Return the world with an event added at a time.

    *what* is four times the index that the event concerns, plus its kind.
    """
    number = world.tally[TallyIndex.EVENTS]
    if number == len(world.event_s):
        world = with_room(world, 1)
    world.tally[TallyIndex.EVENTS] = push(world.event_s, world.event, number, at_s, what)
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
        world.records[record]["next"] = NOBODY
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

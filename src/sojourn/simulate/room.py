"""Room in the simulated world: arrays grow with what is in flight."""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from sojourn.simulate.kernel import push
from sojourn.simulate.layout import TallyIndex, World

__all__ = ["scheduled", "with_room"]

T = TypeVar("T", bound=np.generic)


def with_room(world: World, room: int) -> World:
    """Return the world with arrays at least twice as long, and *room* to spare.

    Of events there is beside it room for one of each processor.
    """

    def longer(array: NDArray[T], used: int, room: int = room) -> NDArray[T]:
        size = max(2 * used, used + 2 * room, len(array))
        grown = np.zeros(size, array.dtype)
        grown[: len(array)] = array
        if array.dtype.names:
            # those added are linked behind each other; the last free one leads to the first
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
    """Return the world in which an event happens at a time.

    *what* is four times who it concerns, and its kind.
    """
    number = world.tally[TallyIndex.EVENTS]
    if number == len(world.event_s):
        world = with_room(world, 1)
    world.tally[TallyIndex.EVENTS] = push(world.event_s, world.event, number, at_s, what)
    return world

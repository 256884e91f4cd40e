"""Room in the simulated world: arrays grow with what is in flight."""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from sojourn.simulate.kernel import push
from sojourn.simulate.layout import Tally, World

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

    tally = world.tally
    in_flight, roots, events = (
        int(tally[i]) for i in (Tally.RECORDS, Tally.ROOTS, Tally.EVENTS)
    )
    return world._replace(
        records=longer(world.records, in_flight),
        roots=longer(world.roots, roots),
        event_s=longer(world.event_s, events, room + len(world.slots)),
        event=longer(world.event, events, room + len(world.slots)),
    )


def scheduled(world: World, at_s: float, what: int) -> World:
    """Return the world in which an event happens at a time.

    *what* is four times who it concerns, and its kind.
    """
    number = world.tally[Tally.EVENTS]
    if number == len(world.event_s):
        world = with_room(world, 1)
    world.tally[Tally.EVENTS] = push(world.event_s, world.event, number, at_s, what)
    return world

"""A running simulation: time advances, roots complete, processors are added and removed."""

from collections.abc import Iterator, Mapping
from math import inf

import numpy as np
from numpy.typing import NDArray

from sojourn.simulate import kernel
from sojourn.simulate.construction import build, room_for
from sojourn.simulate.workload import Workload
from sojourn.simulate.world import pause, resize, with_room
from sojourn.topology import Topology

COUNTERS = ("served", "sampled", "service_s", "service_ss", "wait_s", "wait_ss")
"""The counters of processors."""


# The compiled loop returns after this many completed roots, so that interrupts are handled and
# progress can be shown.
_PORTION = 1 << 15


class Simulation:
    """A simulation of a topology with an allocation, from time 0 on.

    It is deterministic for a given seed. Only records in flight are kept in memory.
    """

    def __init__(
        self,
        topology: Topology,
        allocation: Mapping[str, int],
        *,
        workload: Workload,
        seed: int,
        sample_every: int = 1,
    ) -> None:
        self.topology = topology
        self._index = {name: i for i, name in enumerate(topology.operator)}
        self._rng = np.random.default_rng(seed)
        self._room = room_for(topology, workload)
        self._world = build(
            topology,
            allocation,
            workload,
            self._rng,
            sample_every=sample_every,
            buffer=_PORTION,
        )

    @property
    def now_s(self) -> float:
        return float(self._world.clock_s[0])

    @property
    def roots_done(self) -> int:
        return int(self._world.tally[kernel.DONE])

    @property
    def roots_entered(self) -> int:
        """Roots that have entered, complete or not."""
        return self.roots_done + int(self._world.tally[kernel.ROOTS])

    @property
    def open_births_s(self) -> NDArray[np.float64]:
        """Return the births of the roots that are not complete."""
        roots = self._world.roots
        births_s: NDArray[np.float64] = roots["birth_s"][roots["open"] > 0]
        return births_s

    @property
    def visits(self) -> int:
        """Records that were served, at all operators."""
        return int(self._world.tally[kernel.VISITS])

    def advance(
        self, *, until_s: float = inf, most_roots: int | None = None
    ) -> Iterator[NDArray[np.void]]:
        """Simulate, and yield arrays of completed roots: birth, completion and sum.

        End at *until_s*, when *most_roots* have completed in total, or when no events are left.
        An array is valid only until the next one is yielded.
        """
        most = most_roots if most_roots is not None else np.iinfo(np.int64).max
        while True:
            why = kernel.advance(self._world, self._rng, until_s, most, self._room)
            number = int(self._world.tally[kernel.WRITTEN_ROOTS])
            self._world.tally[kernel.WRITTEN_ROOTS] = 0
            yield self._world.written[:number]
            if why == kernel.MORE_ROOM:
                self._world = with_room(self._world, self._room)
            elif why == kernel.REACHED or self.roots_done >= most:
                return

    def resize(self, allocation: Mapping[str, int], *, pause_s: float = 0.0) -> None:
        """Change the processors of operators, and pause those that change."""
        for name, processors in allocation.items():
            operator = self._index[name]
            if int(self._world.operators[operator]["processors"]) != processors:
                self._world = pause(self._world, operator, pause_s)
                self._world = resize(self._world, operator, processors)

    def close(self) -> None:
        """Admit no more records; those in flight continue."""
        world = self._world
        number = int(world.tally[kernel.EVENTS])
        stays = np.flatnonzero(world.event[:number] & 3 != kernel.ARRIVE)
        # a sorted array is a valid heap
        stays = stays[np.argsort(world.event_s[stays], kind="stable")]
        world.event[: len(stays)] = world.event[stays]
        world.event_s[: len(stays)] = world.event_s[stays]
        world.tally[kernel.EVENTS] = len(stays)

    def watch(self, *, bin_s: float, bins: int) -> None:
        """Reset the counters of processors, and count arrivals in *bins* of *bin_s* each."""
        operators = len(self._index)
        self._world = self._world._replace(arrived=np.zeros((operators, bins), np.int64))
        self._world.window[:] = self.now_s, bin_s
        for counter in COUNTERS:
            self._world.slots[counter] = 0
        self._world.operators["hot_arrived"] = 0

    def arrivals(self, name: str) -> NDArray[np.int64]:
        """Return the arrivals at an operator in each bin since `watch`."""
        arrived: NDArray[np.int64] = self._world.arrived[self._index[name]]
        return arrived

    def processors(self, name: str) -> NDArray[np.void]:
        """Return the slots of an operator, with counters of its processors since `watch`."""
        row = self._world.operators[self._index[name]]
        return self._world.slots[row["first_slot"] : row["first_slot"] + row["slots"]]

    def waiting(self, name: str) -> int:
        hot = int(self._world.operators[self._index[name]]["hot_length"])
        return hot + int(self.processors(name)["length"].sum())

    def hottest(self, name: str) -> float:
        """Return the share of the hottest key in the arrivals at an operator since `watch`."""
        hot = int(self._world.operators[self._index[name]]["hot_arrived"])
        return hot / max(1, int(self.arrivals(name).sum()))

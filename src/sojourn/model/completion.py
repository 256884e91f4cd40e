"""Completion: the time until the last record of a root's tree is done.

A record is complete when it has been served and the last of its children is complete:

    completion of a record = its own sojourn + the longest completion among its children

This is taken from the last operators to the first, with the sojourn times of different
records held to be independent. Inside a loop the equation refers to itself and is iterated:
each round adds one generation of records, and a gain below 1 lets them die out.
"""

from collections.abc import Mapping
from math import floor

import numpy as np

from sojourn.model.lattice import Lattice, Masses
from sojourn.model.station import Station
from sojourn.topology import Topology

__all__ = ["Completion"]

# A loop has settled when another generation moves no probability by more than this.
_SETTLED = 1e-8


class Completion:
    """The completion of a topology's roots on one lattice, for any allocation.

    An operator's sojourn is kept for every number of processors it was asked for: a search
    over allocations changes one or two operators at a time.
    """

    def __init__(
        self, topology: Topology, stations: Mapping[str, Station], lattice: Lattice
    ) -> None:
        self._topology, self._stations, self._lattice = topology, stations, lattice
        self._sojourns: dict[tuple[str, int | None], Masses] = {}

    def __call__(self, allocation: Mapping[str, int | None]) -> Masses:
        """Return the distribution of a root's completion.

        An operator with None for its processors has so many that nothing waits there.
        """
        topology, complete = self._topology, dict[str, Masses]()
        sojourns = {name: self._sojourn(name, k) for name, k in allocation.items()}
        for component in reversed(topology.components):
            if topology.looped.isdisjoint(component):
                complete |= self._generation(component, sojourns, complete)
            else:
                complete |= self._loop(component, sojourns, complete)
        root = np.zeros(self._lattice.points)
        for name, per_s in topology.entries.items():
            root += per_s / topology.arrivals_per_s * complete[name]
        return root

    def _sojourn(self, name: str, processors: int | None) -> Masses:
        """Return the distribution of the time on the wire, waiting and in service."""
        known = self._sojourns.get((name, processors))
        if known is not None:
            return known
        load, model = self._topology.loads[name], self._stations[name]
        masses = (
            model.service(load, self._lattice)
            if processors is None
            else model.sojourn(load, processors, self._lattice)
        )
        transfer_s = self._topology.operator[name].transfer_s
        if transfer_s > 0:
            masses = self._lattice.add(masses, self._lattice.constant(transfer_s))
        self._sojourns[name, processors] = masses
        return masses

    def _loop(
        self,
        component: tuple[str, ...],
        sojourns: Mapping[str, Masses],
        complete: Mapping[str, Masses],
    ) -> dict[str, Masses]:
        known = dict.fromkeys(component, self._lattice.constant(0.0))
        moved = 1.0
        while moved > _SETTLED:
            grown = self._generation(component, sojourns, {**complete, **known})
            moved = max(float(np.abs(np.cumsum(grown[n] - known[n])).max()) for n in component)
            known = grown
        return known

    def _generation(
        self,
        component: tuple[str, ...],
        sojourns: Mapping[str, Masses],
        complete: Mapping[str, Masses],
    ) -> dict[str, Masses]:
        """Return the completions in *component*, given those of the children."""
        grown = {}
        for name in component:
            grown[name] = sojourns[name]
            if self._topology.gains[name]:
                last = _last_child(self._topology, name, complete)
                grown[name] = self._lattice.add(sojourns[name], last)
        return grown


def _last_child(topology: Topology, name: str, complete: Mapping[str, Masses]) -> Masses:
    """Return the distribution of the last child's completion, 0 where there is no child.

    Of a fan-out with a mean of 2.3 there are two children always and a third with a
    chance of 0.3: the last of them is done with probability F² (0.7 + 0.3 F).
    """
    gains = topology.gains[name]
    if topology.operator[name].route == "one_of":
        mixed: Masses = np.sum([mean * complete[t] for t, mean in gains.items()], axis=0)
        mixed[0] += max(0.0, 1 - sum(gains.values()))
        return mixed
    last = np.array(1.0)
    for target, mean in gains.items():
        done = np.cumsum(complete[target])
        always, chance = floor(mean), mean % 1
        last = last * done**always * (1 - chance + chance * done)
    return np.diff(last, prepend=0.0)

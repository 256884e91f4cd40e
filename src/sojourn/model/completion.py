"""Completion: the time until the last record of a root's tree is processed.

A record is complete when it has been served and the last of its children is complete:

    completion of a record = transfer and wait + service + the longest of its children

This is computed from the last operators to the first. Children sent to different operators are
assumed to be independent. Siblings sent to the same operator meet the same queue: they share
one wait, and are then served concurrently by its processors. Inside a loop the equation refers
to itself. If nothing branches it is linear and is solved; otherwise it is iterated, and each
iteration adds at least one generation of records. It converges, because the gain of a loop is
below 1.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import floor
from typing import TypeAlias

import numpy as np

from sojourn.errors import EndlessLoop
from sojourn.model.keyed import Keyed
from sojourn.model.lattice import Lattice, Masses, Spectrum
from sojourn.model.station import Station
from sojourn.topology import Topology
from sojourn.topology.load import StationLoad

# A loop has converged when another generation changes no probability by more than this.
_SETTLED = 1e-8
# Limit for branching loops; this many generations already take seconds.
_MOST_GENERATIONS = 5_000
# Loops of more operators are iterated even if they could be solved.
_MOST_SOLVED = 16
# More siblings than this are processed in groups.
_MOST_GROUPS = 64
# The most results that are kept for other allocations: some megabytes.
_MOST_KEPT = 1000

_Queues: TypeAlias = "Mapping[str, _Queue]"
_Served: TypeAlias = Mapping[str, Spectrum]


class Completion:
    """The completion of a topology's roots on one lattice, for any allocation.

    Results of an operator are cached for each number of processors, and those of the operators
    from a component on for each of their allocations, because a search over allocations changes
    one or two operators at a time. Raise `EndlessLoop` if a branching loop
    has too many generations of records.
    """

    def __init__(
        self,
        topology: Topology,
        stations: Mapping[str, Station],
        lattice: Lattice,
    ) -> None:
        self._topology, self._stations, self._lattice = topology, stations, lattice
        self._services = {
            # stations are modules or frozen, so they are hashable
            name: _service(stations[name], load.service_s, load.service_scv, lattice)  # type: ignore[arg-type]
            for name, load in topology.loads.items()
        }
        self._queues: dict[tuple[str, int | None], _Queue] = {}
        self._reached = _reached(topology)
        self._served: dict[tuple[int, tuple[int | None, ...]], _Served] = {}

    def __call__(self, allocation: Mapping[str, int | None]) -> Masses:
        """Return the distribution of a root's completion.

        None as the number of processors of an operator means unlimited processors.
        """
        topology = self._topology
        queues = {name: self._queue(name, k) for name, k in allocation.items()}
        # completion counted from the start of a record's service
        served: dict[str, Spectrum] = {}
        for at in reversed(range(len(topology.components))):
            key = at, tuple(allocation[name] for name in self._reached[at])
            if key not in self._served:
                if len(self._served) >= _MOST_KEPT:
                    self._served.clear()
                self._served[key] = self._component(topology.components[at], queues, served)
            served |= self._served[key]
        root = np.zeros(self._lattice.points + 1, np.complex128)
        for name, per_s in topology.entries.items():
            if per_s > 0:
                root += per_s / topology.arrivals_per_s * queues[name].wait * served[name]
        return self._lattice.masses(root)

    def _queue(self, name: str, processors: int | None) -> "_Queue":
        if (name, processors) not in self._queues:
            lattice, load = self._lattice, self._topology.loads[name]
            station = self._stations[name]
            part = 0.0
            if isinstance(station, Keyed):
                part = station.part
                others, of_key = station.both(load, processors, lattice)
            elif processors is not None:
                others = of_key = station.wait(load, processors, lattice)
            else:
                others = of_key = lattice.constant(0.0)
            transfer_s = self._topology.operator[name].transfer_s
            wire = lattice.spectrum(lattice.constant(transfer_s)) if transfer_s > 0 else 1.0
            self._queues[name, processors] = _Queue(
                wire * lattice.spectrum(others),
                1 - float((1 - part) * others[0] + part * of_key[0]),
                processors,
                load.service_s,
                part,
                wire * lattice.spectrum(of_key) if part else None,
            )
        return self._queues[name, processors]

    def _component(
        self, component: tuple[str, ...], queues: _Queues, served: _Served
    ) -> _Served:
        if self._topology.looped.isdisjoint(component):
            return {name: self._record(name, queues, served) for name in component}
        if len(component) <= _MOST_SOLVED and not any(
            self._topology.operator[name].branches for name in component
        ):
            return self._solved(component, queues, served)
        return self._iterated(component, queues, served)

    def _iterated(
        self, component: tuple[str, ...], queues: _Queues, served: _Served
    ) -> _Served:
        """Return the completions within a loop that branches.

        Children outside the loop are the same in each iteration, and are computed once.
        """
        lattice, gains = self._lattice, self._topology.gains
        nothing = lattice.spectrum(lattice.constant(0.0))
        known = {**served, **dict.fromkeys(component, nothing)}
        inside = {name: [t for t in gains[name] if t in component] for name in component}
        outside = {
            name: self._cleared(name, gains[name].keys() - set(component), queues, served)
            for name in component
            if self._topology.operator[name].branches
        }
        before = dict.fromkeys(outside, np.ones(lattice.points))
        for _ in range(_MOST_GENERATIONS):
            moved = 0.0
            for name in reversed(component):
                if name in outside:
                    last = outside[name] * self._cleared(name, inside[name], queues, known)
                    known[name] = self._followed(name, last)
                    # a service changes by no more than what precedes it
                    change, before[name] = last - before[name], last
                else:
                    grown = self._record(name, queues, known)
                    change = np.cumsum(lattice.change(grown - known[name]))
                    known[name] = grown
                moved = max(moved, float(np.abs(change).max()))
            if moved <= _SETTLED:
                return {name: known[name] for name in component}
        raise EndlessLoop(
            f"the loop through {', '.join(component)} still has records after "
            f"{_MOST_GENERATIONS} generations, so its completion cannot be computed; "
            "lower the mean numbers emitted inside it"
        )

    def _solved(self, component: tuple[str, ...], queues: _Queues, served: _Served) -> _Served:
        """Return the completions within a loop that does not branch.

        In the frequency domain the equation is one small linear system per frequency.
        """
        gains, frequencies = self._topology.gains, self._lattice.points + 1
        matrix = np.zeros((frequencies, len(component), len(component)), np.complex128)
        right = np.zeros((frequencies, len(component), 1), np.complex128)
        for row, name in enumerate(component):
            service = self._services[name]
            matrix[:, row, row] += 1
            leaves = np.full(frequencies, _ends(gains[name]), np.complex128)
            for target, chance in gains[name].items():
                wait = queues[target].wait
                if target in component:
                    matrix[:, row, component.index(target)] -= chance * service * wait
                else:
                    leaves += chance * wait * served[target]
            right[:, row, 0] = service * leaves
        solved = np.linalg.solve(matrix, right)[:, :, 0]
        return dict(zip(component, solved.T, strict=True))

    def _record(self, name: str, queues: _Queues, served: _Served) -> Spectrum:
        """Return the completion of a record from its service on, given that of its children."""
        gains = self._topology.gains[name]
        if not gains:
            return self._services[name]
        if self._topology.operator[name].branches:
            return self._followed(name, self._cleared(name, gains, queues, served))
        ends = _ends(gains)
        child = np.full(self._lattice.points + 1, ends, np.complex128) if ends > 0 else 0.0
        for target, chance in gains.items():
            completed = queues[target].wait * served[target]
            child = child + (completed if chance == 1 else chance * completed)
        return self._services[name] * child

    def _followed(self, name: str, last: Masses) -> Spectrum:
        """Return the completion of a record from its service on, given that of the last child.

        *last* is cumulated.
        """
        lattice = self._lattice
        return self._services[name] * lattice.spectrum(lattice.differences(last))

    def _cleared(
        self, name: str, targets: Collection[str], queues: _Queues, served: _Served
    ) -> Masses:
        """Return the probability that all children at *targets* are complete at each time."""
        lattice, last = self._lattice, np.ones(self._lattice.points)
        for target, mean in self._topology.gains[name].items():
            if target not in targets:
                continue
            # a mean of 2.3 means two children, and a third with a probability of 0.3
            always, chance = floor(mean), mean % 1
            queue, child = queues[target], served[target]
            by_then = (1 - chance) * queue.cleared(lattice, child, always)
            if chance > 0:
                by_then += chance * queue.cleared(lattice, child, always + 1)
            last *= by_then
        return last


@lru_cache(maxsize=256)
def _service(
    station: Station, service_s: float, service_scv: float, lattice: Lattice
) -> Spectrum:
    """Return the spectrum of a service, which does not depend on the arrivals."""
    load = StationLoad(arrivals_per_s=0.0, service_s=service_s, service_scv=service_scv)
    spectrum = lattice.spectrum(station.service(load, lattice))
    spectrum.flags.writeable = False  # it is shared
    return spectrum


def _reached(topology: Topology) -> list[tuple[str, ...]]:
    """Return the operators that the records of each component can reach, with its own."""
    reached: dict[str, set[str]] = {}
    for component in reversed(topology.components):
        targets = {target for name in component for target in topology.gains[name]}
        after = set(component).union(*(reached.get(target, set()) for target in targets))
        reached |= dict.fromkeys(component, after)
    order = topology.operator
    return [tuple(n for n in order if n in reached[c[0]]) for c in topology.components]


def _ends(gains: Mapping[str, float]) -> float:
    """Return the probability that a record of an operator that does not branch has no child."""
    return max(0.0, 1 - sum(gains.values()))


@dataclass(frozen=True, slots=True)
class _Queue:
    """Transfer and wait of a record before its service at an operator."""

    others: Spectrum
    """Transfer and wait of records without the hottest key."""
    waits: float
    """The probability of waiting."""
    processors: int | None
    service_s: float
    part: float
    """The part of the records with the hottest key."""
    of_key: Spectrum | None
    """Transfer and wait of records with the hottest key."""

    @property
    def wait(self) -> Spectrum:
        """Transfer and wait of any record."""
        return self.wait_of(1)

    def wait_of(self, siblings: int) -> Spectrum:
        """Return the shared wait of *siblings*: if one has the hottest key, its wait."""
        if self.of_key is None:
            return self.others
        hot = 1 - (1 - self.part) ** siblings
        return (1 - hot) * self.others + hot * self.of_key

    def cleared(self, lattice: Lattice, served: Spectrum, siblings: int) -> Masses:
        """Return the probability that all *siblings* are complete at each time.

        *served* is the distribution for one of them, from the beginning of its service.
        """
        last = np.ones(lattice.points)
        if siblings == 0:
            return last
        if siblings > 1:
            done = lattice.cumulated(lattice.masses(served))
            for start_s, number in self._starts(siblings):
                last *= lattice.later(done, start_s) ** number
            served = lattice.spectrum(lattice.differences(last))
        return lattice.cumulated(lattice.masses(self.wait_of(siblings) * served))

    def _starts(self, siblings: int) -> Iterator[tuple[float, int]]:
        """Yield groups of *siblings*: start of service after the first, and size of the group.

        If all processors are busy, service starts one by one, k per service time. If they are
        idle, k start immediately, and the others one by one. The mean of both cases is used.
        """
        k = siblings if self.processors is None else self.processors
        waits = 0.0 if self.processors is None else self.waits
        size = -(-siblings // _MOST_GROUPS)
        for first in range(0, siblings, size):
            number = min(size, siblings - first)
            before = first + (number - 1) / 2
            turns = waits * before + (1 - waits) * max(0.0, before - k + 1)
            yield turns / k * self.service_s, number

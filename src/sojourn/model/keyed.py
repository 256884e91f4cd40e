"""An operator partitioned by key: a shared queue, in which each key is served sequentially.

A part p of the records has the hottest key; the other keys are assumed to be so many that no
two of their records meet. In addition to the queue for a processor, with a wait of W(k), the
records of the hottest key have a queue of their own with a single server, with a wait of H.
They wait in both, but for a processor only in the part 1 - p in which other keys keep the
processors busy:

    (1 - p) · W(k) + p · (H + (1 - p) · W(k))  =  (1 - p²) · W(k) + p · H

This is exact for p = 0 and p = 1 with any number of processors. With one processor, records of
the hottest key wait no longer than others, so W(1) is used. Each further processor gains less,
because H does not depend on their number (docs/background/accuracy.md has the errors).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import inf

from sojourn.model.lattice import Lattice, Masses
from sojourn.model.station import Station
from sojourn.topology.load import StationLoad


@dataclass(frozen=True, slots=True)
class Keyed:
    """A station model for an operator with a hottest key.

    >>> from sojourn.model.station import mmk
    >>> load = StationLoad(arrivals_per_s=8, service_s=0.1)
    >>> one, many = Keyed(mmk, 0.5).wait_s(load, 1), Keyed(mmk, 0.5).wait_s(load, 100)
    >>> one, many  # M/M/1; and half of the records, in M/M/1 with half of the load
    (0.4, 0.0333)
    """

    shared: Station
    """The model of the queue for a processor."""
    part: float
    """The part of the records with the hottest key."""

    def wait_s(self, load: StationLoad, processors: int) -> float:
        """Return the mean wait; infinite if one processor cannot serve the hottest key."""
        return next(self.waits_s(load, processors))

    def waits_s(self, load: StationLoad, first: int) -> Iterator[float]:
        least_s, both = self.least_wait_s(load), 1 - self.part**2
        for processors, wait_s in enumerate(self.shared.waits_s(load, first), first):
            yield wait_s if processors == 1 else both * wait_s + least_s

    def wait(self, load: StationLoad, processors: int, lattice: Lattice) -> Masses:
        """Return the distribution of the wait: a mixture over both kinds of records."""
        others, of_key = self.both(load, processors, lattice)
        return (1 - self.part) * others + self.part * of_key

    def service(self, load: StationLoad, lattice: Lattice) -> Masses:
        return self.shared.service(load, lattice)

    def least_wait_s(self, load: StationLoad) -> float:
        """Return the mean wait that remains with unlimited processors."""
        if self.part * load.erlangs >= 1:
            return inf
        return self.part * self.shared.wait_s(self._of_key(load), 1)

    def both(
        self, load: StationLoad, processors: int | None, lattice: Lattice
    ) -> tuple[Masses, Masses]:
        """Return the distributions of the waits of other keys, and of the hottest key.

        None as *processors* means unlimited processors.
        """
        if processors is None:
            return lattice.constant(0.0), self.shared.wait(self._of_key(load), 1, lattice)
        others = self.shared.wait(load, processors, lattice)
        if processors == 1:
            return others, others
        also = (1 - self.part) * others
        also[0] += self.part
        return others, lattice.add(self.shared.wait(self._of_key(load), 1, lattice), also)

    def _of_key(self, load: StationLoad) -> StationLoad:
        """Return the load of the hottest key.

        A random part of any stream is closer to a Poisson stream. The scv is limited so that
        the key never waits longer than all records together would for one processor, however
        regularly they arrive.
        """
        a, s, busy = load.arrival_scv, load.service_scv, load.erlangs
        scv = 1 + self.part * (a - 1)
        if busy < 1:
            longest = (a + s) * (1 - self.part * busy) / (1 - busy) - s
            scv = max(0.0, min(scv, longest))
        return replace(load, arrivals_per_s=self.part * load.arrivals_per_s, arrival_scv=scv)

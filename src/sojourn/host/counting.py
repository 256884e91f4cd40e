"""What a host counts between two reports: arrivals in bins, service and waiting times."""

from dataclasses import dataclass, field
from math import floor

import msgspec

__all__ = ["Counters", "Counts", "Tally"]


class Counts(msgspec.Struct, array_like=True, frozen=True):
    """What one processor did: records, and the sums of times and of their squares."""

    processor: str
    served: int
    service_s: float
    service_ss: float
    wait_s: float
    wait_ss: float
    cpu_s: float


class Tally(msgspec.Struct, array_like=True, frozen=True):
    """What happened at an operator between two times of the host's clock."""

    since_s: float
    at_s: float
    bin_s: float
    arrivals: list[int]
    processors: list[Counts]
    wanted: int
    running: int
    waiting: int
    replayed: int
    retried: int


@dataclass(slots=True)
class _Sums:
    served: int = 0
    service_s: float = 0.0
    service_ss: float = 0.0
    wait_s: float = 0.0
    wait_ss: float = 0.0
    cpu_s: float = 0.0


@dataclass(slots=True)
class Counters:
    """Counts from *since_s* on, arrivals in bins of *bin_s*.

    >>> counters = Counters(since_s=100.0, bin_s=0.5)
    >>> counters.arrived(100.1), counters.arrived(101.2)
    (None, None)
    >>> counters.served("a-1", service_s=0.3, wait_s=0.1, cpu_s=0.0)
    >>> tally = counters.taken(101.5, wanted=1, running=1, waiting=0, replayed=0, retried=0)
    >>> tally.arrivals, tally.processors[0].served
    ([1, 0, 1], 1)
    """

    since_s: float
    bin_s: float
    _arrivals: list[int] = field(default_factory=list)
    _sums: dict[str, _Sums] = field(default_factory=dict)

    def arrived(self, at_s: float) -> None:
        """Count a record that arrived."""
        place = max(0, floor((at_s - self.since_s) / self.bin_s))
        self._arrivals += [0] * (place + 1 - len(self._arrivals))
        self._arrivals[place] += 1

    def served(self, processor: str, *, service_s: float, wait_s: float, cpu_s: float) -> None:
        """Count a record that a processor is done with."""
        sums = self._sums.setdefault(processor, _Sums())
        sums.served += 1
        sums.service_s += service_s
        sums.service_ss += service_s * service_s
        sums.wait_s += wait_s
        sums.wait_ss += wait_s * wait_s
        sums.cpu_s += cpu_s

    def taken(
        self,
        at_s: float,
        *,
        wanted: int,
        running: int,
        waiting: int,
        replayed: int,
        retried: int,
    ) -> Tally:
        """Return what was counted, and begin anew."""
        bins = max(1, -floor(-(at_s - self.since_s) / self.bin_s))
        arrivals = (self._arrivals + [0] * bins)[: max(bins, len(self._arrivals))]
        tally = Tally(
            since_s=self.since_s,
            at_s=at_s,
            bin_s=self.bin_s,
            arrivals=arrivals,
            processors=[
                Counts(
                    processor=name,
                    served=sums.served,
                    service_s=sums.service_s,
                    service_ss=sums.service_ss,
                    wait_s=sums.wait_s,
                    wait_ss=sums.wait_ss,
                    cpu_s=sums.cpu_s,
                )
                for name, sums in self._sums.items()
            ],
            wanted=wanted,
            running=running,
            waiting=waiting,
            replayed=replayed,
            retried=retried,
        )
        self.since_s, self._arrivals, self._sums = at_s, [], {}
        return tally

"""Processors that were added, and take a time until they can take records."""

from collections.abc import Mapping
from math import inf


class Starting:
    """The numbers of processors that run now, and those that will.

    >>> starting = Starting({"match": 2}, delay_s=10.0)
    >>> starting.change({"match": 5}, now_s=0.0), starting.next_s
    ({}, 10.0)
    >>> starting.change({"match": 4}, now_s=3.0), starting.due(10.0)
    ({}, {'match': 4})
    """

    def __init__(self, allocation: Mapping[str, int], *, delay_s: float) -> None:
        self._running, self._delay_s = dict(allocation), delay_s
        self._coming: dict[str, list[tuple[float, int]]] = {}

    @property
    def next_s(self) -> float:
        """When the next processors start; infinite if none do."""
        return min((steps[0][0] for steps in self._coming.values() if steps), default=inf)

    def change(self, allocation: Mapping[str, int], now_s: float) -> dict[str, int]:
        """Request *allocation*; return the operators that change at once, with their number.

        Processors are removed at once, those that have not started first.
        """
        for name, wanted in allocation.items():
            coming = self._coming.get(name, [])
            # of those that are on their way, as many as are still wanted keep their time
            sooner = [at_s for at_s, number in coming if number >= wanted]
            steps = [(at_s, number) for at_s, number in coming if number < wanted]
            at_s = now_s + self._delay_s if wanted > self._running[name] else now_s
            self._coming[name] = [*steps, (min([at_s, *sooner]), wanted)]
        return self.due(now_s)

    def due(self, now_s: float) -> dict[str, int]:
        """Return the operators whose number changes by *now_s*, with their number."""
        changed = {}
        for name, steps in self._coming.items():
            reached = [number for at_s, number in steps if at_s <= now_s]
            self._coming[name] = steps[len(reached) :]
            if reached and reached[-1] != self._running[name]:
                self._running[name] = changed[name] = reached[-1]
        return changed

"""Mean visits of each operator per root, learned from the records that arrive."""

from dataclasses import dataclass, field

__all__ = ["Visits"]

# The counts are halved at twice this many roots, so that older roots weigh less.
_REMEMBERED = 2000


@dataclass(slots=True)
class _Counts:
    roots: float = 0.0
    visits: dict[str, float] = field(default_factory=dict)


@dataclass(slots=True)
class Visits:
    """Visits of operators by the topic of the root.

    >>> visits = Visits()
    >>> for operator in ("split", "count", "count", "count"):
    ...     visits.visited("lines", operator)
    >>> visits.entered("lines")
    >>> visits.per_root("lines"), visits.tree("lines"), visits.tree("prices")
    ({'split': 1.0, 'count': 3.0}, 4.0, 1.0)
    """

    _topics: dict[str, _Counts] = field(default_factory=dict)

    def entered(self, topic: str) -> None:
        """Count a root."""
        counts = self._of(topic)
        counts.roots += 1
        if counts.roots >= 2 * _REMEMBERED:
            counts.roots /= 2
            counts.visits = {name: number / 2 for name, number in counts.visits.items()}

    def visited(self, topic: str, operator: str) -> None:
        """Count a record of a root at an operator."""
        visits = self._of(topic).visits
        visits[operator] = visits.get(operator, 0.0) + 1

    def per_root(self, topic: str) -> dict[str, float]:
        """Return the mean number of records of a root at each operator."""
        counts = self._of(topic)
        roots = max(1.0, counts.roots)
        return {name: number / roots for name, number in counts.visits.items()}

    def tree(self, topic: str) -> float:
        """Return the mean number of records in the tree of a root, at least 1."""
        return max(1.0, sum(self.per_root(topic).values()))

    def of_all(self) -> dict[str, dict[str, float]]:
        """Return the visits per root of all topics."""
        return {topic: self.per_root(topic) for topic in self._topics}

    def _of(self, topic: str) -> _Counts:
        counts = self._topics.get(topic)
        if counts is None:
            counts = self._topics[topic] = _Counts()
        return counts

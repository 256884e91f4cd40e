"""Records of a root: mean visits of each operator, and the sizes of the trees that are open."""

from dataclasses import dataclass, field

from sojourn.spark.wire.record import Root

# The counts are halved at twice this many roots, so that older roots weigh less.
_REMEMBERED = 2000


@dataclass(slots=True)
class _Counts:
    roots: float = 0.0
    visits: dict[str, float] = field(default_factory=dict)


@dataclass(slots=True)
class Visits:
    """Mean visits of operators by the topic of the root, learned from records that arrive.

    >>> visits = Visits()
    >>> for operator in ("split", "count", "count", "count"):
    ...     visits.visited("lines", operator)
    >>> visits.entered("lines")
    >>> visits.per_root("lines"), visits.tree("lines"), visits.tree("prices")
    ({'split': 1.0, 'count': 3.0}, 4.0, 1.0)
    """

    _topics: dict[str, _Counts] = field(default_factory=dict)

    def entered(self, topic: str) -> None:
        counts = self._of(topic)
        counts.roots += 1
        if counts.roots >= 2 * _REMEMBERED:
            counts.roots /= 2
            counts.visits = {name: number / 2 for name, number in counts.visits.items()}

    def visited(self, topic: str, operator: str) -> None:
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
        return {topic: self.per_root(topic) for topic in self._topics}

    def _of(self, topic: str) -> _Counts:
        counts = self._topics.get(topic)
        if counts is None:
            counts = self._topics[topic] = _Counts()
        return counts


@dataclass(slots=True)
class _Tree:
    open: int = 0
    made: int = 0


@dataclass(slots=True)
class OpenTrees:
    """Trees that have open records in memory, not only on disk.

    >>> trees, root = OpenTrees(), Root(("lines", 0), 7)
    >>> trees.entered(root)
    >>> trees.entered(root)
    >>> trees.done(root)
    >>> trees.made(root)
    2
    >>> trees.done(root)
    >>> trees.made(root)
    0
    """

    _trees: dict[Root, _Tree] = field(default_factory=dict)

    def entered(self, root: Root) -> None:
        """Count a record that enters memory."""
        tree = self._trees.get(root)
        if tree is None:
            tree = self._trees[root] = _Tree()
        tree.open += 1
        tree.made += 1

    def done(self, root: Root) -> None:
        """Count a record as done; the last one ends its tree."""
        tree = self._trees[root]
        tree.open -= 1
        if not tree.open:
            del self._trees[root]

    def made(self, root: Root) -> int:
        """Return the size of the tree of a root since it last had no record in memory."""
        tree = self._trees.get(root)
        return 0 if tree is None else tree.made

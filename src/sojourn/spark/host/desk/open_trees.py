"""Sizes of the trees of roots that have records in memory."""

from dataclasses import dataclass, field

from sojourn.spark.wire.record import Root

__all__ = ["OpenTrees"]


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

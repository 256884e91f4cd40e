"""Tracing of roots until their whole tree is processed.

Every record is reported when it is processed, with the records that it sent. A tree is complete
when all records that were sent are processed. Reports may arrive out of order and repeatedly.
"""

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

Key = tuple[str, str]
"""A record at an operator: its identity and the operator's name."""

# The most open trees, and completed ones that are remembered.
_MOST = 20_000


@dataclass(frozen=True, slots=True)
class Completed:
    """A root whose tree is complete."""

    birth_s: float
    completion_s: float
    """Time from the birth of the root until its last record was processed."""
    sum_s: float
    """Sum of the sojourns of all records of the tree."""
    weight: int
    """Number of roots that this traced one stands for."""


@dataclass(slots=True)
class _Tree:
    birth_s: float
    last_s: float = 0.0
    sum_s: float = 0.0
    weight: int = 1
    rooted: bool = False
    pending: set[Key] = field(default_factory=set)
    done: set[Key] = field(default_factory=set)


class Trees:
    """The incomplete trees; the oldest are dropped if there are too many.

    *readers* are the operators that read each stream, *entries* those that read from outside. A
    root that is read by several operators counts as one root for each of them.
    """

    def __init__(self, readers: Mapping[str, Iterable[str]], entries: Iterable[str]) -> None:
        self._readers = {stream: tuple(names) for stream, names in readers.items()}
        self._entries = sorted(entries, key=len, reverse=True)
        self._open: OrderedDict[Key, _Tree] = OrderedDict()
        self._closed: OrderedDict[Key, None] = OrderedDict()
        self.forgotten = 0

    def __len__(self) -> int:
        return len(self._open)

    def add(  # noqa: PLR0913 - the fields of a report, by name
        self,
        operator: str,
        *,
        root: str,
        identity: str,
        birth_s: float,
        done_s: float,
        sojourn_s: float,
        weight: int = 1,
        children: Iterable[tuple[str, str]] = (),
    ) -> Completed | None:
        """Add a processed record, and return the root that it completes, if any.

        *children* are the streams and identities of the records it sent.

        >>> trees = Trees({"words": ["count"]}, ["split"])
        >>> told = {"root": "r", "birth_s": 0.0}
        >>> trees.add("count", identity="r.split.0", done_s=5.0, sojourn_s=2.0, **told)
        >>> sent = [("words", "r.split.0"), ("elsewhere", "r.split.1")]
        >>> trees.add("split", identity="r", done_s=3.0, sojourn_s=3.0, children=sent, **told)
        Completed(birth_s=0.0, completion_s=5.0, sum_s=5.0, weight=1)
        """
        key = root, operator if identity == root else self._entry(root, identity)
        if key in self._closed:
            return None
        tree = self._open.get(key)
        if tree is None:
            tree = self._open[key] = _Tree(birth_s)
            self._forget()
        here = identity, operator
        if here in tree.done:
            return None
        tree.done.add(here)
        tree.pending.discard(here)
        for stream, child in children:
            sent = {(child, reader) for reader in self._readers.get(stream, ())}
            tree.pending |= sent - tree.done
        tree.last_s = max(tree.last_s, done_s)
        tree.sum_s += sojourn_s
        tree.rooted = tree.rooted or identity == root
        tree.weight = weight
        if not tree.rooted or tree.pending:
            return None
        del self._open[key]
        self._closed[key] = None
        if len(self._closed) > _MOST:
            self._closed.popitem(last=False)
        # a producer's clock may be ahead of ours
        return Completed(birth_s, max(0.0, tree.last_s - birth_s), tree.sum_s, tree.weight)

    def open_births(self) -> list[tuple[float, int]]:
        """Return the births of the roots that are not complete, with their weights."""
        return [(tree.birth_s, tree.weight) for tree in self._open.values()]

    def _entry(self, root: str, identity: str) -> str:
        """Return the entry operator of the root of a record, from its identity."""
        for entry in self._entries:
            start = f"{root}.{entry}."
            if identity.startswith(start) and identity[len(start) :][:1].isdigit():
                return entry
        return ""

    def _forget(self) -> None:
        """Drop the oldest trees beyond the limit; their reports are lost, or very late."""
        while len(self._open) > _MOST:
            self._open.popitem(last=False)
            self.forgotten += 1

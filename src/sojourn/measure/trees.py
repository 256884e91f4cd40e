"""Roots that are traced until their whole tree is done.

Every record reports when it is done, and which records it sent. A tree is complete when all
records that were sent are done; reports may come in any order, and repeatedly.
"""

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

__all__ = ["Completed", "Trees"]

Key = tuple[str, str]
"""A record at an operator: its identity and the operator's name."""


@dataclass(frozen=True, slots=True)
class Completed:
    """A root whose tree is done: its completion, and the sum of the sojourns of its records."""

    completion_s: float
    sum_s: float
    weight: int


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
    """The trees that are not complete yet, at most *most* of them.

    *readers* are the operators that read each stream, *entries* those that read from outside. A
    root that several operators read counts as one root for each of them.
    """

    def __init__(
        self,
        readers: Mapping[str, Iterable[str]],
        entries: Iterable[str],
        *,
        most: int = 20_000,
    ) -> None:
        self._readers = {stream: tuple(names) for stream, names in readers.items()}
        self._entries = sorted(entries, key=len, reverse=True)
        self._most = most
        self._open: OrderedDict[Key, _Tree] = OrderedDict()
        self._closed: OrderedDict[Key, None] = OrderedDict()
        self.forgotten = 0

    def __len__(self) -> int:
        return len(self._open)

    def add(  # noqa: PLR0913 - what is told of a record
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
        """Return the root that the record *identity*, done at *operator*, completes, if any.

        *children* are the streams and identities of the records it sent.

        >>> trees = Trees({"words": ["count"]}, ["split"])
        >>> told = {"root": "r", "birth_s": 0.0}
        >>> trees.add("count", identity="r.split.0", done_s=5.0, sojourn_s=2.0, **told)
        >>> sent = [("words", "r.split.0"), ("elsewhere", "r.split.1")]
        >>> trees.add("split", identity="r", done_s=3.0, sojourn_s=3.0, children=sent, **told)
        Completed(completion_s=5.0, sum_s=5.0, weight=1)
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
        if len(self._closed) > self._most:
            self._closed.popitem(last=False)
        # a producer's clock may be ahead of ours
        return Completed(max(0.0, tree.last_s - birth_s), tree.sum_s, tree.weight)

    def _entry(self, root: str, identity: str) -> str:
        """Return the operator at which the root of a record entered."""
        for entry in self._entries:
            start = f"{root}.{entry}."
            if identity.startswith(start) and identity[len(start) :][:1].isdigit():
                return entry
        return ""

    def _forget(self) -> None:
        """Drop the oldest trees: some of their reports were lost, or take too long."""
        while len(self._open) > self._most:
            self._open.popitem(last=False)
            self.forgotten += 1

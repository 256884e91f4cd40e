"""Who reads and sends what inside a part."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

__all__ = ["PartGraph"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartGraph:
    """Who reads what.

    *readers* are the operators that read a stream, *emits* the streams that an operator sends
    to, *leaving* the streams that are given to relays, *everyone* the operators with the
    streams that all their processors get. *inner* streams never were in a topic when they are
    read. Projections *behind* the part read streams that leave it: which, by their names.
    *stateful* operators keep a state for each key, and those in *nulls* read messages without
    a value too.
    """

    readers: Mapping[str, tuple[str, ...]]
    emits: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    leaving: frozenset[str] = frozenset()
    everyone: frozenset[tuple[str, str]] = field(default=frozenset())
    inner: frozenset[str] = frozenset()
    behind: Mapping[str, str] = field(default_factory=dict)
    stateful: frozenset[str] = frozenset()
    nulls: frozenset[str] = frozenset()

    def leads_out(self, stream: str, without: Collection[str]) -> bool:
        """Tell whether records of a stream come to an end somewhere *without* some operators.

        >>> graph = PartGraph(
        ...     readers={"lines": ("split",), "words": ("count", "store")},
        ...     emits={"split": ("words",), "count": (), "store": ()},
        ... )
        >>> graph.leads_out("lines", ["store"]), graph.leads_out("lines", ["store", "count"])
        (True, False)
        """
        left, seen = list(self.readers.get(stream, ())), set(without)
        while left:
            operator = left.pop()
            if operator in seen:
                continue
            seen.add(operator)
            emits = self.emits.get(operator, ())
            if not emits or any(name in self.leaving for name in emits):
                return True
            left += [reader for name in emits for reader in self.readers.get(name, ())]
        return False

"""The streams between the operators of a part."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

__all__ = ["PartGraph"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartGraph:
    """The operators and streams of a part."""

    readers: Mapping[str, tuple[str, ...]]
    """Operators that read a stream."""
    emits: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Streams that an operator emits."""
    leaving: frozenset[str] = frozenset()
    """Streams that leave the part, through relays."""
    everyone: frozenset[tuple[str, str]] = field(default=frozenset())
    """Broadcast streams, each as the operator that reads it and its name."""
    inner: frozenset[str] = frozenset()
    """Streams whose records have not been in a topic when they are read."""
    behind: Mapping[str, str] = field(default_factory=dict)
    """The stream that a projection behind the part reads, by the projection's name."""
    stateful: frozenset[str] = frozenset()
    """Operators with a state for each key."""
    nulls: frozenset[str] = frozenset()
    """Operators that also read messages without a value."""

    def leads_out(self, stream: str, without: Collection[str]) -> bool:
        """Return whether records of a stream can reach an exit *without* some operators.

        An exit is an operator that emits nothing, or a stream that leaves the part.

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

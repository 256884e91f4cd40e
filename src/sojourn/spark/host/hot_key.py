"""The most frequent key and its share of the records, in bounded memory."""

from dataclasses import dataclass, field

import msgspec

__all__ = ["HotKeyCounter"]

# A key may be a whole document; this is enough to recognise it.
_LONGEST = 60


@dataclass(slots=True)
class HotKeyCounter:
    """Counts keys by the algorithm of Misra and Gries (1982), with *most* counters.

    A key that occurs n times is counted between n - N/most and n times, of N in all.

    >>> hot = HotKeyCounter()
    >>> for key in "abacad":
    ...     hot.count(key)
    >>> hot.part, hot.key
    (0.5, 'a')
    """

    most: int = 500
    _all: int = 0
    _counts: dict[str, int] = field(default_factory=dict)

    def count(self, key: str) -> None:
        """Count a record with this key."""
        self._all += 1
        if key in self._counts or len(self._counts) < self.most:
            self._counts[key] = self._counts.get(key, 0) + 1
        else:  # no counter is free: all fall by one, and those at zero are freed
            self._counts = {name: n - 1 for name, n in self._counts.items() if n > 1}

    @property
    def part(self) -> float:
        """Share of the records with the most frequent key; 0 before the first."""
        return max(self._counts.values(), default=0) / max(1, self._all)

    @property
    def key(self) -> str:
        """The most frequent key, readable and shortened; empty if there is none.

        Keys are JSON lists of columns; one of a single text column is shown as text in quotes.
        """
        key = max(self._counts, key=lambda key: self._counts[key], default="")
        try:
            (column,) = msgspec.json.decode(key, type=tuple[str])
        except msgspec.DecodeError:
            column = None
        shown = key if column is None else repr(column)
        return shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 1]}…"

"""Which key is the most frequent, and which part of the records has it, in little memory."""

from dataclasses import dataclass, field

import msgspec

__all__ = ["HotKeyCounter"]

# A key may be a whole document; this is enough to recognise it.
_LONGEST = 60


@dataclass(slots=True)
class HotKeyCounter:
    """Counts keys as Misra and Gries do (1982): at least all that *most* keys may have.

    A key of which there are n is counted between n - N/most and n times, N being all.

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
        """Count a record."""
        self._all += 1
        if key in self._counts or len(self._counts) < self.most:
            self._counts[key] = self._counts.get(key, 0) + 1
        else:
            self._counts = {name: n - 1 for name, n in self._counts.items() if n > 1}

    @property
    def part(self) -> float:
        """The part of all that have the most frequent key; 0 where there are none."""
        return max(self._counts.values(), default=0) / max(1, self._all)

    @property
    def key(self) -> str:
        """The most frequent key, as it is read best and shortened; empty where there is none.

        Keys are JSON lists of columns: that of one column of text is the text in quotes.
        """
        key = max(self._counts, key=lambda key: self._counts[key], default="")
        try:
            (column,) = msgspec.json.decode(key, type=tuple[str])
        except msgspec.DecodeError:
            column = None
        shown = key if column is None else repr(column)
        return shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 1]}…"

"""Which part of the records has the most frequent key, in little memory."""

from dataclasses import dataclass, field

__all__ = ["HotKeyCounter"]


@dataclass(slots=True)
class HotKeyCounter:
    """Counts keys as Misra and Gries do (1982): at least all that *most* keys may have.

    A key of which there are n is counted between n - N/most and n times, N being all.

    >>> hot = HotKeyCounter()
    >>> for key in "abacad":
    ...     hot.count(key)
    >>> hot.part
    0.5
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

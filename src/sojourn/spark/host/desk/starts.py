"""When processors that could not be started are tried again."""

from dataclasses import dataclass

__all__ = ["Starts"]

_FIRST_S, _LONGEST_S = 0.1, 10.0
# So many in a row, while no processor is there at all: none will ever be.
_HOPELESS = 5
# A system that has no room for a process may have some again when others have ended.
_STARVED_S = 60.0


@dataclass(slots=True)
class Starts:
    """How many *failures* there were since a start succeeded, and *why* the last one failed.

    >>> starts = Starts()
    >>> starts.failed("no file descriptors left", 10.0)
    >>> starts.failed("no file descriptors left", 10.0)  # of the same attempt
    >>> starts.waits(10.05), starts.waits(10.1)
    (True, False)
    """

    why: str = ""
    failures: int = 0
    _of_its_own: int = 0
    _since_s: float | None = None
    _lasted_s: float = 0.0
    _attempts: int = 0
    _again_at_s: float | None = None

    def failed(self, why: str, now_s: float, *, starved: bool = False) -> None:
        """Take note that a processor could not be started; *starved* of memory or the like."""
        self.why = why
        self.failures += 1
        self._of_its_own += not starved
        self._since_s = now_s if self._since_s is None else self._since_s
        self._lasted_s = now_s - self._since_s
        if self._again_at_s is None:
            self._attempts += 1
            delay_s = min(_LONGEST_S, _FIRST_S * 2.0 ** min(self._attempts - 1, 10))
            self._again_at_s = now_s + delay_s

    def succeeded(self) -> None:
        """Take note that a processor is ready."""
        self.failures = self._attempts = self._of_its_own = 0
        self._since_s, self._lasted_s = None, 0.0

    def waits(self, now_s: float) -> bool:
        """Return whether it is too early to start any."""
        if self._again_at_s is not None and now_s >= self._again_at_s:
            self._again_at_s = None
        return self._again_at_s is not None

    @property
    def hopeless(self) -> bool:
        """Whether so many failed in a row that more will."""
        return self._of_its_own >= _HOPELESS or (
            self.failures >= _HOPELESS and self._lasted_s >= _STARVED_S
        )

"""Back-off between starts of processors on a node after a start has failed."""

from dataclasses import dataclass

_FIRST_S, _LONGEST_S = 0.1, 10.0
# After this many failures in a row, further starts are assumed to fail too.
_HOPELESS = 5
# A machine without memory for a process may have some again when other processes have ended,
# so failures for lack of resources count only once they have lasted this long.
_STARVED_S = 60.0


@dataclass(slots=True)
class Starts:
    """Failed starts on a node, and the exponential back-off until the next one.

    >>> starts = Starts()
    >>> starts.failed("no file descriptors left", 10.0)
    >>> starts.failed("no file descriptors left", 10.0)  # of the same attempt
    >>> starts.waits(10.05), starts.waits(10.1)
    (True, False)
    """

    why: str = ""
    """Reason of the last failure."""
    failures: int = 0
    """Failures since a start succeeded."""
    _of_its_own: int = 0
    """Failures that were not caused by a lack of resources."""
    _since_s: float | None = None
    _lasted_s: float = 0.0
    _attempts: int = 0
    """Attempts that failed; processors started together are one attempt."""
    _again_at_s: float | None = None

    def failed(self, why: str, now_s: float, *, starved: bool = False) -> None:
        """Record a failed start; *starved* if the machine lacked memory or the like."""
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
        """Reset the failures: a processor is ready."""
        self.failures = self._attempts = self._of_its_own = 0
        self._since_s, self._lasted_s = None, 0.0

    def waits(self, now_s: float) -> bool:
        """Return whether the back-off has not passed yet."""
        if self._again_at_s is not None and now_s >= self._again_at_s:
            self._again_at_s = None
        return self._again_at_s is not None

    @property
    def hopeless(self) -> bool:
        """Whether starts have failed for so long that the next is expected to fail too."""
        return self._of_its_own >= _HOPELESS or (
            self.failures >= _HOPELESS and self._lasted_s >= _STARVED_S
        )

"""Deduplicated errors for the log of an operator: each kind once, then its count per minute."""

from dataclasses import dataclass, field

__all__ = ["ErrorLog"]

_EVERY_S = 60.0


@dataclass(slots=True)
class _ErrorKind:
    error: str
    more: int = 0


@dataclass(slots=True)
class ErrorLog:
    r"""Errors seen, by kind: raised at the same line, or without traceback the same message.

    >>> log = ErrorLog()
    >>> log.seen("ValueError: bad 1", "File a, line 1\nValueError: bad 1", "lines/0/7")
    'record lines/0/7: ValueError: bad 1\nFile a, line 1\nValueError: bad 1'
    >>> log.seen("ValueError: bad 2", "File a, line 1\nValueError: bad 2", "lines/0/8")
    ''
    >>> log.repeated(0.0), log.repeated(60.0)
    ([], ['1 more like ValueError: bad 1'])
    """

    most_kinds: int = 100
    _kinds: dict[str, _ErrorKind] = field(default_factory=dict)
    _others: int = 0
    """Errors of kinds beyond *most_kinds* since the last report."""
    _told_s: float | None = None

    def seen(self, error: str, traceback: str, record: str) -> str:
        """Return the log entry of an error; empty if its kind was logged already."""
        name = _kind(error, traceback)
        if (kind := self._kinds.get(name)) is not None:
            kind.more += 1
            return ""
        if len(self._kinds) >= self.most_kinds:
            self._others += 1
            return ""
        self._kinds[name] = _ErrorKind(error.partition("\n")[0])
        told = f"record {record}: {error}" if record else error
        return f"{told}\n{traceback}" if traceback else told

    def repeated(self, now_s: float) -> list[str]:
        """Return, once a minute, the counts of errors that were not logged."""
        if self._told_s is None:
            self._told_s = now_s
        if now_s - self._told_s < _EVERY_S:
            return []
        self._told_s = now_s
        lines = [f"{k.more} more like {k.error}" for k in self._kinds.values() if k.more]
        if self._others:
            lines.append(f"{self._others} errors of other kinds")
        for kind in self._kinds.values():
            kind.more = 0
        self._others = 0
        return lines


def _kind(error: str, traceback: str) -> str:
    """Return the type and stack of an error, without the message, which may name the record."""
    frames = [line for line in traceback.splitlines() if line.lstrip().startswith("File ")]
    if not frames:
        return error[:500]
    return "\n".join([error.partition(":")[0], *frames])

"""What a function raised, in words: short, and with its frames."""

from pathlib import Path
from traceback import StackSummary, TracebackException

__all__ = ["described"]

_OURS = str(Path(__file__).parents[1])
# Both travel with a record, and a message may have any length.
_MOST_ERROR, _MOST_TRACEBACK = 2 << 10, 8 << 10


def described(raised: BaseException) -> tuple[str, str]:
    """Return the error in a line or few, and its traceback without frames of our own."""
    told = TracebackException.from_exception(raised)
    error = _sound("".join(told.format_exception_only()).strip())
    _leave_out_ours(told)
    traceback = _sound("".join(told.format()).rstrip())
    return _cut(error, _MOST_ERROR), _cut(traceback, _MOST_TRACEBACK)


def _sound(text: str) -> str:
    """Return *text* as it can be sent: half a surrogate pair is no text in UTF-8."""
    return text.encode(errors="backslashreplace").decode()


def _leave_out_ours(told: TracebackException) -> None:
    """Leave the frames of the user's code, in all that one exception came of."""
    seen: list[TracebackException] = []
    waiting: list[TracebackException | None] = [told]
    while waiting:
        one = waiting.pop()
        if one is None or any(one is other for other in seen):
            continue
        seen.append(one)
        theirs = [frame for frame in one.stack if not frame.filename.startswith(_OURS)]
        one.stack = StackSummary.from_list(theirs)
        waiting += [one.__cause__, one.__context__, *(one.exceptions or ())]


def _cut(text: str, most: int) -> str:
    """Return *text* without its middle, if it is long: what is last says most.

    >>> _cut("a" * 30, 20)
    'aa ... aaaaaaaaaaaaa'
    """
    if len(text) <= most:
        return text
    head = max(0, (most - 5) // 6)
    return f"{text[:head]} ... {text[len(text) - (most - 5 - head) :]}"

"""Reminders: later calls for the same key that a function schedules, as with a timer."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any

from sojourn.text import shown

_LONGEST_S = 100 * 365 * 86400.0
_LONGEST_NOTE = 10_000


@dataclass(frozen=True, slots=True)
class Reminder:
    """A scheduled call."""

    note: str
    """Text from the function that scheduled it."""
    due_s: float
    """When it is due, in Unix time."""


class State(dict[str, Any]):
    """The state of a key: a dictionary that can also schedule reminders.

    *reminded* is the reminder that caused the call, or None in a call with a record.
    *reminders* are scheduled in this call, as seconds and note.

    >>> state = State(n=1)
    >>> state.remind(after_s=30, note="quiet?")
    >>> state, state.reminders, state.reminded
    ({'n': 1}, [(30.0, 'quiet?')], None)
    """

    __slots__ = ("reminded", "reminders")

    def __init__(
        self,
        fields: Mapping[str, Any] | Iterable[tuple[str, Any]] = (),
        /,
        *,
        reminded: Reminder | None = None,
        **more: Any,  # noqa: ANN401 - fields of any type
    ) -> None:
        super().__init__(fields, **more)
        self.reminded = reminded
        self.reminders: list[tuple[float, str]] = []

    def remind(self, *, after_s: float, note: str = "") -> None:
        """Schedule a call of the function for this key, *after_s* seconds after this record.

        The reminder is committed together with state changes and yielded records. Each call of
        `remind` schedules one call of the function.
        """
        if isinstance(after_s, bool) or not isinstance(after_s, int | float):
            raise TypeError(f"after_s: {shown(after_s)} is not a number of seconds")
        if not isfinite(after_s) or not 0 <= after_s <= _LONGEST_S:
            problem = f"after_s: {after_s} is not between 0 and {_LONGEST_S:.0f} seconds"
            raise ValueError(f"{problem} (100 years)")
        if not isinstance(note, str):
            raise TypeError(f"note: {shown(note)} is not text; write str(…) or JSON")
        try:
            note.encode()
        except UnicodeEncodeError as error:
            problem = f"note: {shown(note)} cannot be written as UTF-8"
            raise ValueError(f"{problem}; leave out {shown(note[error.start])}") from error
        if len(note) > _LONGEST_NOTE:
            problem = f"note: {len(note)} characters exceed the limit of {_LONGEST_NOTE}"
            raise ValueError(f"{problem}; keep it in the state instead")
        self.reminders.append((float(after_s), note))


def reminders_of(operator: str) -> str:
    """Return the stream of an operator's reminders; @ is invalid in other names.

    >>> reminders_of("count")
    'count@reminders'
    """
    return f"{operator}@reminders"

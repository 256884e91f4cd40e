"""How a running application is, beside what is measured of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["Health"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """What went wrong so far, and what became of it.

    *restarts* of feeds and hosts by operator, records *replayed* from memory, *retried* after
    an error, kept as *dead_letters*. Of the roots that are followed some *trees* are *open*,
    and some were *forgotten* because too many were. *unkept* is why the state does not have
    the processors of now, if it has not: the next start begins with others. *failure* is why
    the application stopped, if it did. Brokers have not answered for *no_broker_s*, if they do
    not; *notices* are what somebody should know. The topics between operators hold
    *held_records*, and on a broker of our own so many *held_bytes*.
    """

    restarts: Mapping[str, int] = field(default_factory=dict)
    replayed: int = 0
    retried: int = 0
    dead_letters: int = 0
    running: Mapping[str, int] = field(default_factory=dict)
    trees_open: int = 0
    trees_forgotten: int = 0
    unkept: str = ""
    failure: str = ""
    no_broker_s: float | None = None
    notices: tuple[str, ...] = ()
    held_records: int = 0
    held_bytes: int | None = None

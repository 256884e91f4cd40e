"""What processors run: found by name, so that nothing has to be sent to them."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib import import_module
from typing import Protocol, cast

from sojourn.errors import BadInput
from sojourn.spark.wire.processor import OutputRecord
from sojourn.spark.wire.record import Record

__all__ = ["Job", "Lent", "load"]


@dataclass(slots=True)
class Lent:
    """The *state* of a record's key, which the job may replace; empty if it has none.

    *reminders* are for the job to ask for: after how many seconds, and a note.
    """

    state: bytes
    reminders: list[tuple[float, str]] = field(default_factory=list)


class Job(Protocol):
    """The work of one operator.

    `set_up` is called once in each processor, before its first record; a call then gets one
    record, with the state of its key if the operator keeps any, and returns what it sends on;
    `tear_down` is called when the processor ends in order. All of them may raise anything.
    """

    def set_up(self) -> None:
        """Prepare this processor: load a model, open a connection."""
        ...

    def tear_down(self) -> None:
        """Release what `set_up` has opened."""
        ...

    def __call__(self, record: Record, lent: Lent | None = None, /) -> Iterable[OutputRecord]:
        """Return what *record* sends on."""
        ...


def load(spec: str, argument: str = "") -> Job:
    """Return the job that `package.module:factory` makes of *argument*.

    Raise `BadInput` if there is none.
    """
    module, _, name = spec.partition(":")
    try:
        factory = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise BadInput(
            f"{spec!r} cannot be loaded: {error}; write package.module:name, importable here"
        ) from error
    return cast("Job", factory(argument))

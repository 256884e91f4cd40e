"""The job of a processor, imported by name so that no code has to be sent."""

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
    """The state of a record's key, which the job may replace."""

    state: bytes
    """Empty if the key has no state."""
    reminders: list[tuple[float, str]] = field(default_factory=list)
    """Reminders that the job requests: delay in seconds, and note."""


class Job(Protocol):
    """The work of one operator.

    `set_up` is called once in each processor, before its first record; then the job is called
    with each record, and the state of its key if the operator keeps any, and returns its
    outputs; `tear_down` is called when the processor ends cleanly. All of them may raise any
    exception.
    """

    def set_up(self) -> None:
        """Prepare this processor: load a model, open a connection."""
        ...

    def tear_down(self) -> None:
        """Release what `set_up` has opened."""
        ...

    def __call__(self, record: Record, lent: Lent | None = None, /) -> Iterable[OutputRecord]:
        """Return the outputs for *record*."""
        ...


def load(spec: str, argument: str = "") -> Job:
    """Return the job that the factory *spec*, `package.module:factory`, makes of *argument*.

    Raise `BadInput` if the factory cannot be imported.
    """
    module, _, name = spec.partition(":")
    try:
        factory = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise BadInput(
            f"{spec!r} cannot be loaded: {error}; write package.module:name, importable here"
        ) from error
    return cast("Job", factory(argument))

"""The output of a run, as a Protocol."""

from collections.abc import Generator, Iterable, Sequence
from typing import Protocol

from sojourn.engine import KafkaAccess
from sojourn.knowledge import Episode
from sojourn.service.entry import Entry
from sojourn.service.supervisor import Supervisor

__all__ = ["Output"]


class Output(Protocol):
    """Is called in this order; `progress`, `notice` and `error` at any time."""

    def starting(self, name: str, engine: str, begins_with: str) -> None:
        """Report that the engine starts, and with which processors."""
        ...

    def ready(
        self,
        entry: Entry,
        supervisor: Supervisor,
        kafka: KafkaAccess | None,
        notes: Sequence[str],
    ) -> None:
        """Report that the application runs."""
        ...

    def shown(self, passing: Iterable[Episode], supervisor: Supervisor) -> Generator[Episode]:
        """Show each turn, and yield it."""
        ...

    def change(self, episode: Episode) -> None:
        """Report a change, or an order by hand. A repeated recommendation is not reported."""
        ...

    def end(self, supervisor: Supervisor) -> None:
        """Report the end, with a summary."""
        ...

    def progress(self, text: str) -> None:
        """Report the progress of the start or the stop."""
        ...

    def notice(self, text: str) -> None:
        """Report something that users should know."""
        ...

    def error(self, text: str) -> None:
        """Report a failure."""
        ...

"""What a run tells as it goes: whoever starts one says to whom."""

from collections.abc import Generator, Iterable, Sequence
from typing import Protocol

from sojourn.engine import KafkaAccess
from sojourn.knowledge import Episode
from sojourn.service.entry import Entry
from sojourn.service.supervisor import Supervisor

__all__ = ["Output"]


class Output(Protocol):
    """Is told what happens, in this order; `progress`, `notice` and `error` at any time."""

    def starting(self, name: str, engine: str, begins_with: str) -> None:
        """Say that it is started, and with which processors: that may take its time."""
        ...

    def ready(
        self,
        entry: Entry,
        supervisor: Supervisor,
        kafka: KafkaAccess | None,
        notes: Sequence[str],
    ) -> None:
        """Say that it runs."""
        ...

    def shown(self, passing: Iterable[Episode], supervisor: Supervisor) -> Generator[Episode]:
        """Yield each turn that passes by, having shown it."""
        ...

    def change(self, episode: Episode) -> None:
        """Say what a turn changed, or what the loop was told; it is called for news only."""
        ...

    def end(self, supervisor: Supervisor) -> None:
        """Say that it has ended, and what it came to."""
        ...

    def progress(self, text: str) -> None:
        """Say how far the start, or the end, has come."""
        ...

    def notice(self, text: str) -> None:
        """Say what somebody should know."""
        ...

    def error(self, text: str) -> None:
        """Say what failed."""
        ...

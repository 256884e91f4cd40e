"""What commands need of an engine beside what the loop needs: its health, and a way to end."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from sojourn.engine import Engine

__all__ = ["Health", "LiveEngine"]


class Health(Protocol):
    """What went wrong so far, and was put right."""

    @property
    def restarts(self) -> Mapping[str, int]:
        """How often each operator was started again."""
        ...

    @property
    def replayed(self) -> int:
        """Records that came again."""
        ...

    @property
    def retried(self) -> int:
        """Records that were tried again."""
        ...

    @property
    def dead_letters(self) -> int:
        """Records that were laid aside."""
        ...

    @property
    def running(self) -> Mapping[str, int]:
        """Processors that can take records now."""
        ...

    @property
    def unkept(self) -> str:
        """Why the processors of now are not kept for the next start; empty if they are."""
        ...

    @property
    def failure(self) -> str:
        """Why the application has stopped; empty while it runs."""
        ...

    @property
    def no_broker_s(self) -> float | None:
        """For how long no broker has answered; None if one does."""
        ...

    @property
    def notices(self) -> Sequence[str]:
        """What somebody should know, each in a sentence that stays the same while it lasts."""
        ...

    @property
    def held_records(self) -> int:
        """Records in topics between operators."""
        ...

    @property
    def held_bytes(self) -> int | None:
        """What they take up; None where that is not known."""
        ...


class LiveEngine(Engine, Protocol):
    """An engine whose `apply` and `health` may be called while another thread looks."""

    @property
    def clients(self) -> Mapping[str, str]:
        """Settings of clients to its Kafka, which may be secrets."""
        ...

    def health(self) -> Health:
        """Return how it is."""
        ...

    def uncommitted(self) -> int:
        """Return how many records that were begun would come again if it stopped now."""
        ...

    def drain(self, progress: Callable[[str], None]) -> None:
        """Take nothing more in, end what was begun and commit it; *progress* is told of it."""
        ...

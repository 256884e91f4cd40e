"""The processors of an operator on another node, as its station sees them."""

from collections.abc import Callable, Iterable, Mapping

import msgspec

from sojourn.spark.wire.agent import Assign, Kill, LetGo, Start
from sojourn.spark.wire.processor import Assignment
from sojourn.spark.wire.record import Record

__all__ = ["RemoteProcesses"]


class RemoteProcesses:
    """What is asked of them is *told* to the agent of their node."""

    def __init__(self, operator: str, tell: Callable[[msgspec.Struct], None]) -> None:
        self._operator, self._tell = operator, tell
        self.used: Mapping[int, int] = {}

    def start(self, number: int) -> None:
        """Start a processor; the station is told whether that succeeded."""
        self._tell(Start(self._operator, number))

    def give(
        self, number: int, records: Iterable[Record], states: Mapping[str, bytes] | None = None
    ) -> None:
        """Let a processor work on records, with the *states* of their keys."""
        self._tell(Assign(self._operator, number, Assignment(list(records), states)))

    def let_go(self, number: int) -> None:
        """End a processor that has nothing to do."""
        self._tell(LetGo(self._operator, number))

    def kill(self, number: int, reason: str) -> None:
        """End a processor whatever it does."""
        self._tell(Kill(self._operator, number, reason))

    def memory(self) -> Mapping[int, int]:
        """Return the memory of each processor in bytes, as the agent told it last."""
        return self.used

"""Events of a host that wait, in order, while its log cannot be written.

No decision may have an effect before it is logged. So while the disk is full, the last decision
is carried out once it is written, and later events are decided only then.
"""

from collections import deque
from collections.abc import Callable

from sojourn.errors import DiskFull
from sojourn.spark.host.batch.write_queue import Room

__all__ = ["HeldEvents"]


class HeldEvents:
    """Events that wait until *write*, which writes the rest of the log, finds *room*."""

    def __init__(self, write: Callable[[], None], room: Room) -> None:
        self._write, self._room = write, room
        self._events: deque[Callable[[], None]] = deque()
        self.waiting = False

    def put(self, event: Callable[[], None]) -> None:
        """Run an event: now, or after all events that wait.

        An event that raises `DiskFull` has changed nothing, and is retried.
        """
        self._events.append(event)
        self._happen()

    def put_next(self, event: Callable[[], None]) -> None:
        """Run an event: now, or directly after the one that was just held."""
        if self.waiting:
            self._events.insert(1, event)
        else:
            event()

    def hold(self, error: DiskFull, then: Callable[[], None]) -> None:
        """Hold all events until there is room, and run *then* first.

        Raise `EngineError` if the disk has been full for too long.
        """
        self._room.lacks(error)
        self.waiting = True
        self._events.appendleft(then)

    def retry(self) -> None:
        """Retry the write; if there is room, run all events that wait.

        Raise `EngineError` if the disk has been full for too long.
        """
        try:
            self._write()
        except DiskFull as error:
            self._room.lacks(error)
            return
        self.waiting = False
        self._happen()
        if not self.waiting:
            self._room.found()

    def _happen(self) -> None:
        while self._events and not self.waiting:
            event = self._events.popleft()
            try:
                event()
            except DiskFull as error:
                self.hold(error, event)

"""What happens at a host while its log cannot be written: it waits, in order.

Nothing may have an effect before it is logged. So what was decided last is carried out once it
is written, and what comes after it is decided only then.
"""

from collections import deque
from collections.abc import Callable

from sojourn.errors import DiskFull
from sojourn.spark.host.batch.write_queue import Room

__all__ = ["HeldEvents"]


class HeldEvents:
    """Events that wait until *write* finds *room* for what could not be written."""

    def __init__(self, write: Callable[[], None], room: Room) -> None:
        self._write, self._room = write, room
        self._events: deque[Callable[[], None]] = deque()
        self.waiting = False

    def put(self, event: Callable[[], None]) -> None:
        """Let an event happen: now, or after all that wait.

        One that raises `DiskFull` has changed nothing, and happens again.
        """
        self._events.append(event)
        self._happen()

    def put_next(self, event: Callable[[], None]) -> None:
        """Let an event happen: now, or right after what was just held."""
        if self.waiting:
            self._events.insert(1, event)
        else:
            event()

    def hold(self, error: DiskFull, then: Callable[[], None]) -> None:
        """Wait for room, and call *then* before all other events.

        Raise `EngineError` if there has been none for too long.
        """
        self._room.lacks(error)
        self.waiting = True
        self._events.appendleft(then)

    def retry(self) -> None:
        """Try to write what could not be written; if there is room, let all happen that waits.

        Raise `EngineError` if there has been none for too long.
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

"""Supervises Sojourn's own broker: restarts it when it exits unexpectedly."""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

from sojourn.spark.driver.disk_watch import has_room
from sojourn.spark.driver.kafka.broker import Broker
from sojourn.spark.driver.restarts import Restarts

_LOOK_S, _ROOM_S = 0.1, 1.0
# Free space that Kafka needs to create the files of a topic.
_BROKER_BYTES = 32 << 20


class BrokerWatch:
    """A thread that restarts *broker* on the same port and data, with exponential backoff.

    If the broker exits too often, the thread calls *failed* once and gives up. Kafka exits
    when its disk is full: while *data* has no room, the restart waits, and it does not count
    as a failure.
    """

    def __init__(
        self, broker: Broker, failed: Callable[[str], None], data: Path | None = None
    ) -> None:
        self.broker, self._failed, self._data = broker, failed, data
        self._restarts = Restarts()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def restarts(self) -> int:
        return self._restarts.number

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._ended.set()
        self._thread.join(2 * _LOOK_S)
        while self._thread.is_alive():
            self.broker.kill()  # a restart in progress can take minutes
            self._thread.join(_LOOK_S)

    def _run(self) -> None:
        why, waited = "it was killed, or Java failed", False
        while not self._ended.wait(_ROOM_S if waited else _LOOK_S):
            if not self.broker.ended:
                continue
            if self._is_full():
                waited = True
                continue
            restarts, now_s = self._restarts, time.monotonic()
            delay_s = restarts.excused_delay_s(now_s) if waited else restarts.delay_s(now_s)
            waited = False
            if delay_s is None:
                self._failed(f"Sojourn's own broker {self._restarts.why}: {why}")
                return
            if self._ended.wait(delay_s):
                return
            try:
                self.broker.start_again()
            except Exception as error:  # noqa: BLE001 - the next attempt may succeed
                why = str(error)

    def _is_full(self) -> bool:
        return self._data is not None and not has_room(self._data, _BROKER_BYTES)

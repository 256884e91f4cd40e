"""Watches over a broker of ours: one that ends by itself is started again."""

import threading
import time
from collections.abc import Callable
from typing import Self

from sojourn.spark.kafka.broker import Broker
from sojourn.spark.restarts import Restarts

__all__ = ["BrokerWatch"]

_LOOK_S = 0.1


class BrokerWatch:
    """A thread that starts *broker* again at its port and with its data, later each time.

    Of one that ends too often *failed* is told, once.
    """

    def __init__(self, broker: Broker, failed: Callable[[str], None]) -> None:
        self._broker, self._failed = broker, failed
        self._restarts = Restarts()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def restarts(self) -> int:
        """How often it was started again."""
        return self._restarts.number

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._ended.set()
        self._thread.join(2 * _LOOK_S)
        while self._thread.is_alive():
            self._broker.kill()  # it may be starting, which can take minutes
            self._thread.join(_LOOK_S)

    def _run(self) -> None:
        why = "it was killed, or Java failed"
        while not self._ended.wait(_LOOK_S):
            if not self._broker.ended:
                continue
            delay_s = self._restarts.delay_s(time.monotonic())
            if delay_s is None:
                self._failed(f"Sojourn's own broker {self._restarts.why}: {why}")
                return
            if self._ended.wait(delay_s):
                return
            try:
                self._broker.start_again()
            except Exception as error:  # noqa: BLE001 - whatever it is may be gone next time
                why = str(error)

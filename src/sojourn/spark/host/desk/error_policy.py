"""Treatment of records that fail: retried, dead-lettered, or the application stops."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from sojourn.app.operator import OnError
from sojourn.spark.host.batch.cut import OpenRecord
from sojourn.spark.host.desk.instructions import RecordCompleted, StopPart
from sojourn.spark.wire.processor import Answer, OutputRecord


@dataclass(slots=True)
class Failures:
    """Failures of one record by cause."""

    tries: int = 0
    """Tries that count for `on_error`."""
    deaths: int = 0
    """Processors that died while they had it, other than by the time limit."""
    lost: int = 0
    """Nodes that were lost while they had it."""


class ErrorPolicy:
    """Applies `on_error` of an operator to its records, and counts retries and dead letters."""

    def __init__(self, on_error: OnError) -> None:
        self.on_error = on_error
        self.retried = self.dead = 0
        self.alone: set[int] = set()
        """Numbers of records that are sent to a processor without others.

        They failed, or were in a batch whose processor died or hung.
        """
        self._failures: defaultdict[int, Failures] = defaultdict(Failures)

    def failures(self, record: OpenRecord) -> Failures:
        return self._failures[record.number]

    def may_retry(self, record: OpenRecord) -> bool:
        """Count a try of a record that failed; return whether it is retried, alone."""
        failures = self._failures[record.number]
        failures.tries += 1
        again = failures.tries <= self.on_error.retries
        self.alone.add(record.number)
        self.retried += again
        return again

    def given_up(
        self,
        record: OpenRecord,
        reason: str,
        traceback: str = "",
        outputs: Sequence[OutputRecord] = (),
    ) -> RecordCompleted | StopPart:
        """Turn a record that is not retried into a dead letter, or a stop."""
        if self.on_error.then != "dead_letter":
            return StopPart(record, reason, traceback)
        self.dead += 1
        tries = max(1, self._failures[record.number].tries)
        self.done(record)
        return RecordCompleted(record, Answer(outputs, reason, traceback, tries))

    def done(self, record: OpenRecord) -> None:
        if self._failures or self.alone:
            self._failures.pop(record.number, None)
            self.alone.discard(record.number)

    def forget(self) -> None:
        self._failures.clear()
        self.alone.clear()

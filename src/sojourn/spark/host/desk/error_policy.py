"""What happens to records that cannot be done: tried again, a dead letter, or a stop."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from sojourn.app.operator import OnError
from sojourn.spark.host.batch.cut import OpenRecord
from sojourn.spark.host.desk.instructions import Completed, Stopping
from sojourn.spark.wire.processor import Answer, OutputRecord

__all__ = ["ErrorPolicy", "Failures"]


@dataclass(slots=True)
class Failures:
    """How often something went wrong with a record in hand."""

    tries: int = 0
    """Tries that count for `on_error`."""
    deaths: int = 0
    """Processors that died while they had it, and did not take too long."""
    lost: int = 0
    """Nodes that were lost while they had it."""


class ErrorPolicy:
    """What *on_error* of an operator says; so many were *retried*, and are *dead* letters.

    Records that failed, or were with others when their processor died or hung, are given
    *alone* from then on: here are their numbers.
    """

    def __init__(self, on_error: OnError) -> None:
        self.on_error = on_error
        self.retried = self.dead = 0
        self.alone: set[int] = set()
        self._failures: defaultdict[int, Failures] = defaultdict(Failures)

    def failures(self, record: OpenRecord) -> Failures:
        """Return what to count failures of a record in."""
        return self._failures[record.number]

    def may_retry(self, record: OpenRecord) -> bool:
        """Return whether a record that failed is tried again: alone, from now on."""
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
    ) -> Completed | Stopping:
        """Return what becomes of a record that is not tried again."""
        if self.on_error.then != "dead_letter":
            return Stopping(record, reason, traceback)
        self.dead += 1
        tries = max(1, self._failures[record.number].tries)
        self.done(record)
        return Completed(record, Answer(outputs, reason, traceback, tries))

    def done(self, record: OpenRecord) -> None:
        """Forget how often a record has failed that is done."""
        if self._failures or self.alone:
            self._failures.pop(record.number, None)
            self.alone.discard(record.number)

    def forget(self) -> None:
        """Forget what happened to all records."""
        self._failures.clear()
        self.alone.clear()

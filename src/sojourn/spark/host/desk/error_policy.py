"""What happens to records that cannot be done: tried again, a dead letter, or a stop."""

from sojourn.app.operator import OnError
from sojourn.spark.host.desk.instructions import Completed, Stopping
from sojourn.spark.host.desk.work_item import RecordInHand
from sojourn.spark.wire.processor import Answer

__all__ = ["ErrorPolicy"]


class ErrorPolicy:
    """What *on_error* of an operator says; so many were *retried*, and are *dead* letters."""

    def __init__(self, on_error: OnError) -> None:
        self.on_error = on_error
        self.retried = self.dead = 0

    def may_retry(self, job: RecordInHand) -> bool:
        """Return whether a record that failed is tried again: alone, from now on."""
        job.tries += 1
        again = job.tries <= self.on_error.retries
        job.alone = True
        self.retried += again
        return again

    def given_up(
        self, job: RecordInHand, reason: str, traceback: str = ""
    ) -> Completed | Stopping:
        """Return what becomes of a record that is not tried again."""
        if self.on_error.then != "dead_letter":
            return Stopping(job, reason, traceback)
        self.dead += 1
        outputs = job.round.outputs if job.round is not None else ()
        return Completed(job, Answer(outputs, reason, traceback, max(1, job.tries)))

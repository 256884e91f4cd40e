"""Answers that are kept until Spark has committed the records: those may come again."""

from dataclasses import dataclass, field

from sojourn.host.messages import Answer

__all__ = ["AnswerMemory"]


@dataclass(frozen=True, slots=True)
class _Known:
    """The answer to a record of a *partition*, which will not come again after batch *last*."""

    partition: tuple[str, int]
    batch: int
    last: int
    answer: Answer


@dataclass(slots=True)
class AnswerMemory:
    """Answers by the identity of their record, the latest *most_bytes* of them."""

    most_bytes: int
    _bytes: int = 0
    _known: dict[str, _Known] = field(default_factory=dict)

    def __contains__(self, identity: str) -> bool:
        return identity in self._known

    def get(self, identity: str) -> tuple[Answer, int] | None:
        """Return the answer to a record and the batch that it was given in, if it is known."""
        known = self._known.get(identity)
        return None if known is None else (known.answer, known.batch)

    def keep(
        self,
        identity: str,
        answer: Answer,
        *,
        partition: tuple[str, int],
        batch: int,
        more_batches: int,
    ) -> None:
        """Keep an answer that may be wanted in so many *more_batches* after its own."""
        self._forget(identity)
        self._known[identity] = _Known(partition, batch, batch + more_batches, answer)
        self._bytes += _size_bytes(answer)
        while self._bytes > self.most_bytes:
            self._forget(next(iter(self._known)))

    def begun(self, partition: tuple[str, int], batch: int) -> None:
        """Forget what is committed, now that *batch* has begun."""
        for identity, known in list(self._known.items()):
            if known.partition == partition and known.last < batch:
                self._forget(identity)

    def _forget(self, identity: str) -> None:
        if (known := self._known.pop(identity, None)) is not None:
            self._bytes -= _size_bytes(known.answer)


def _size_bytes(answer: Answer) -> int:
    """Return about how much memory an answer takes: what it carries, and what holds it."""
    told = len(answer.dead) + len(answer.traceback)
    return 500 + told + sum(200 + output.size_bytes for output in answer.outputs)

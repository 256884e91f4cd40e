"""The batches under way: their uncommitted records, and how to end them before their time."""

import math
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from sojourn.app.operator import PythonOperator
from sojourn.errors import EngineError
from sojourn.spark.driver.counters import Pulls
from sojourn.spark.driver.hosts.controller import Controller
from sojourn.spark.driver.layout import Layout
from sojourn.spark.driver.state.batch_files import Positions
from sojourn.spark.driver.state.checkpoints import Checkpoints
from sojourn.spark.wire.headers import FOR

# Margin for a very busy machine, on top of the time for the records themselves.
_SLACK_S = 120.0
_ANSWER_S, _LOOK_S = 5.0, 0.02
# The interval at which a drain reports progress while nothing changes.
_TELL_S = 5.0
_LAST_MS = 2**63 - 1


@dataclass(frozen=True, slots=True)
class WakeUp:
    """The position of the record that `wake_readers` wrote."""

    topic: str
    partition: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Batches:
    layout: Layout
    state: Checkpoints
    controller: Controller
    pulls: Pulls
    since_s: float
    """The start of the application, in seconds since 1970."""
    batch_s: float
    """The interval at which Spark commits."""

    def uncommitted(self, wake_up: WakeUp | None = None) -> int:
        """Return how many records hosts have taken that Spark has not committed.

        The record of *wake_up* has no reader and does not count.
        """
        return sum(self._uncommitted(part, wake_up) for part in self.layout.parts)

    def drain(
        self,
        progress: Callable[[str], None],
        check: Callable[[], None],
        wake: Callable[[], None] = lambda: None,
    ) -> None:
        """Wait until all records that were taken are committed.

        *progress* receives a line about the batches it waits for; *check* raises if the
        application has stopped meanwhile. *wake* is called only if records are open: an idle
        part would start a batch with the record that wakes it, and the drain would have to
        wait for that batch.
        """
        self.controller.drain()
        of_spark = (*self.layout.natives, *self.layout.misfits)
        commits = {name: self.state.commits(name) for name in of_spark}
        until_s = time.monotonic() + patience_s(self.layout.functions.values(), self.batch_s)
        told: set[str] = set()
        again_s = 0.0
        while left := self._left(commits):
            if not told:
                wake()
            check()
            now_s = time.monotonic()
            if now_s > until_s:
                raise EngineError(
                    f"{_listed(left)}: the batch did not end in time; stop without draining"
                )
            if left != told or now_s >= again_s:
                told, again_s = left, now_s + _TELL_S
                ends_s = (self.state.committed_s(name) or self.since_s for name in left)
                operators = {
                    operator
                    for name in left
                    for operator in (
                        self.layout.parts[name].operators
                        if name in self.layout.parts
                        else (self.layout.misfits.get(name, name),)
                    )
                }
                progress(waits_for(operators, max(ends_s) + self.batch_s - time.time()))

    def locate(self) -> None:
        """Ask hosts for their current offsets, and record those that answer in time."""
        asked, until_s = set(self.controller.ask()), time.monotonic() + _ANSWER_S
        heard: set[str] = set()
        while time.monotonic() < until_s and not asked <= heard:
            time.sleep(_LOOK_S)
            for name, tallies in self.controller.tallies().items():
                self.pulls.located(name, tallies)
                heard.add(name)

    def _left(self, commits: dict[str, int]) -> set[str]:
        """Return the queries with records that were taken and are not committed.

        *commits* are the numbers of commits of Spark's own queries when the drain began. Such
        a query does not report its offsets; until its next commit it may have taken all
        records up to the end of its topics.
        """
        self.locate()
        left = {name for name in self.layout.parts if not self._drained(name)}
        under_way = {name for name, n in commits.items() if self.state.commits(name) <= n}
        if not under_way:
            return left
        try:
            ends = self.pulls.offsets.partitions()
        except EngineError:  # no broker answers: the ends of topics are unknown
            return left | under_way
        for name in under_way:
            reads = {topic: ends[topic] for topic in self.layout.all_reads[name]}
            left |= {name} if self._beyond(name, reads) else set()
        return left

    def _drained(self, part: str) -> bool:
        """Return whether a part has no open records, and Spark has committed that."""
        state = self.pulls.parts.get(part)
        clean = None if state is None else state.clean
        return clean is not None and self.state.commits(part) > clean

    def _uncommitted(self, name: str, wake_up: WakeUp | None) -> int:
        at = self.pulls.positions[name]
        if wake_up is None or not self._beyond(name, _place(wake_up)):
            return self._beyond(name, at)
        taken = at.get(wake_up.topic, {}).get(wake_up.partition, 0) > wake_up.offset
        return self._beyond(name, at) - taken

    def _beyond(self, name: str, at: Positions) -> int:
        """Return the number of records between the committed offsets and *at*."""
        committed = self.state.positions(name, {topic: {} for topic in at})
        return sum(
            max(0, next_ - committed[topic].get(part, 0))
            for topic, parts in at.items()
            for part, next_ in parts.items()
        )


def end_early(session: SparkSession) -> None:
    """Make the batch of every query end at its next record, and later batches take none.

    Readers check a clock of Spark's before each record; it is set to the end of time. A reader
    that waits for a record does not check: its batch lasts its full time. If a later version
    of Spark has no such clock, all batches do.
    """
    _set_clock(session, "ManualClock", _LAST_MS)


def wake_readers(clients: Mapping[str, str], topic: str) -> WakeUp | None:
    """Write a record without an addressee to *topic*: a waiting reader checks its clock.

    If no broker answers, return None: batches last their full time.
    """
    written: list[WakeUp] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        partition, offset = message.partition(), message.offset()
        if error is None and partition is not None and offset is not None:
            written.append(WakeUp(topic, partition, offset))

    producer = Producer({**clients, "log_level": "0"})
    with suppress(KafkaException, BufferError):
        producer.produce(topic, headers=[(FOR, b"")], on_delivery=delivered)
        producer.flush(_ANSWER_S)
    return next(iter(written), None)


def end_in_time(session: SparkSession) -> None:
    """Restore the length of batches: one that failed must read the same records again."""
    _set_clock(session, "SystemClock")


def _set_clock(session: SparkSession, kind: str, *told: int) -> None:
    jvm: Any = session.sparkContext._jvm  # noqa: SLF001 - there is no other way to Java
    with suppress(Py4JError, TypeError):
        clock = getattr(jvm.org.apache.spark.util, kind)(*told)
        jvm.org.apache.spark.sql.execution.datasources.v2.LowLatencyClock.setClock(clock)


def patience_s(operators: Iterable[PythonOperator], batch_s: float) -> float:
    """Return the time limit of a drain: a batch, and the longest time a record may take.

    A record is retried if it fails, and once more if its processor dies.
    """
    longest_s = max(((o.on_error.retries + 2) * o.time_limit_s for o in operators), default=0.0)
    return batch_s + longest_s + _SLACK_S


def waits_for(names: Collection[str], left_s: float) -> str:
    """Return the progress line of a drain: operators whose batch is open, and the time left.

    >>> waits_for({"split", "count"}, 37.2)
    'waiting for the batch of count, split to end (at most 38 s)'
    >>> waits_for({"split"}, -1.0)
    'waiting for the batch of split to end (records are in service)'
    """
    until = f"at most {math.ceil(left_s)} s" if left_s > 0 else "records are in service"
    return f"waiting for the batch of {_listed(names)} to end ({until})"


def _place(wake_up: WakeUp) -> Positions:
    """Return the position after the record of *wake_up*."""
    return {wake_up.topic: {wake_up.partition: wake_up.offset + 1}}


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))

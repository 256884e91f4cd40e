"""Batches on their way to a sink that fail at any moment: on real files."""

import os
import tempfile
from collections import defaultdict
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sojourn.errors import BadFile, EngineError
from sojourn.files.durable_file import write_checked
from sojourn.spark.task.deduplication import Claim, Deduplication, Passage
from sojourn.spark.task.sink_memory import SinkMemory
from sojourn.spark.wire.repetitions import Input
from sojourn.spark.wire.signed_inputs import SignedInputs

SIGNED = SignedInputs(b"key", frozenset(["lines@m"]))
RULES = Deduplication(
    reads="stream",
    writes="sink",
    window=2,
    checkpoint=Path(),
    clients={},
    spark={},
    mark="m",
    inputs=SIGNED,
)


class Sink:
    """A topic that holds ids alone."""

    def __init__(self):
        self.ids = defaultdict(list)

    def end(self, partition):
        return len(self.ids[partition])

    def since(self, partition, offset):
        return self.ids[partition][offset:]

    def last(self, partition, number):
        return self.ids[partition][-number:]


def row(partition, offset, identity=None, *, entered=None, root=None, **others):
    told = {"sojourn-id": identity, "sojourn-root": root, **others}
    headers = [{"key": k, "value": v.encode()} for k, v in told.items() if v is not None]
    if entered is not None:
        headers += [{"key": name, "value": v} for name, v in SIGNED.header(entered)]
    return {"partition": partition, "offset": offset, "headers": headers}


def identity_of(passed):
    return next(h["value"].decode() for h in passed["headers"] if h["key"] == "sojourn-id")


class Part:
    """Writes what comes of roots to a stream: all of it, and what fails again."""

    def __init__(self, partitions, random):
        self.random, self.stream = random, {number: [] for number in range(partitions)}
        self.next, self.floors = [0, 0, 0], [0, 0, 0]
        self.open, self.given, self.lost, self.every = [], [], False, []

    def enter(self, number):
        """Let a root enter, of which so many results come, some time."""
        source = number % len(self.next)
        offset, self.next[source] = self.next[source], self.next[source] + 1
        results = [f"lines@m/{source}/{offset}.split.{n}" for n in range(number % 4)]
        self.every += results
        self.open.append((source, offset, results))

    def result(self, number):
        """Let the next result of any root leave; if it fails, it is not written now."""
        if self.open:
            source, offset, results = self.open[number % len(self.open)]
            if results:
                self.given.append((source, offset, results.pop()))
                if self.random.random() < 0.1:
                    self.lost = True
                else:
                    self.write(*self.given[-1])
            if not results:
                self.open.remove((source, offset, results))

    def write(self, source, offset, identity):
        partition = source % len(self.stream)
        entered = Input(
            writer="split",
            topic="lines@m",
            partition=source,
            offset=offset,
            floor=self.floors[source],
        )
        log = self.stream[partition]
        log.append(row(partition, len(log), identity, entered=entered, root=entered.position))

    def commit(self, _number=0):
        """End a batch: it is repeated until all of it is written."""
        if self.lost:
            self.fail()
        self.given, self.floors = [], list(self.next)
        for source, offset, _ in self.open:
            self.floors[source] = min(self.floors[source], offset)

    def fail(self, _number=0):
        """Repeat what was given since the last commit, in whatever order."""
        self.random.shuffle(self.given)
        for given_again in self.given:
            self.write(*given_again)
        self.lost = False


class Query:
    """Reads a stream, in batches that may fail before, while or after they are written."""

    def __init__(self, stream, folder, random):
        self.stream, self.random, self.sink = stream, random, Sink()
        self.files, self.committed = SinkMemory(folder), dict.fromkeys(stream, 0)
        self.cut_off = []

    def read(self, number, *, fails=False):
        """Run a batch of up to so many records."""
        partition = number % len(self.stream)
        first = self.committed[partition]
        rows = self.stream[partition][first : first + 1 + number]
        if rows:
            passage = Passage(RULES, self.sink, self.files, rows[0])
            new = [identity_of(passed) for passed in passage.new(rows)]
            if not fails:
                passage.save()
                self.committed[partition] += len(rows)
            elif self.random.random() < 0.5:
                passage.save()
            # of what is lost, a later one may be written
            written = [each for each in new if not fails or self.random.random() < 0.5]
            self.sink.ids[partition] += written

    def read_and_fail(self, number):
        self.read(number, fails=True)

    def cut(self, number):
        """Cut off the task of a batch: what it has passed on does not reach the sink yet."""
        partition = number % len(self.stream)
        first = self.committed[partition]
        if rows := self.stream[partition][first : first + 1 + number]:
            passage = Passage(RULES, self.sink, self.files, rows[0])
            on_its_way = [identity_of(passed) for passed in passage.new(rows)]
            self.cut_off.append((partition, passage, on_its_way))

    def connect(self, _number):
        """Connect all tasks again that were cut off: they go on where they were.

        If another has taken over, that was after brokers began to refuse what they had sent.
        """
        for partition, passage, on_its_way in self.cut_off:
            with suppress(EngineError):
                passage.save()
                self.sink.ids[partition] += on_its_way
        self.cut_off = []


EVENTS = ["enter"] * 3 + ["result"] * 4 + ["commit", "fail", "read", "read", "read_and_fail"]
EVENTS += ["cut", "connect"]


# Of a list without a least size five events are drawn on average, in which nothing happens.
LONG = {"min_size": 50, "max_size": 200}


@settings(max_examples=50)
@given(
    history=st.lists(st.tuples(st.sampled_from(EVENTS), st.integers(0, 11)), **LONG),
    partitions=st.integers(1, 4),
    seed=st.integers(0, 2**32),
)
def test_everything_arrives_once_whatever_fails(history, partitions, seed):
    """Roots stay open for any number of batches; the window is much shorter than that."""
    random = Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        part = Part(partitions, random)
        query = Query(part.stream, Path(folder), random)
        for event, number in history:
            getattr(part if hasattr(part, event) else query, event)(number)
        while part.open:
            part.result(0)
        part.commit()
        for partition, log in part.stream.items():
            while query.committed[partition] < len(log):
                query.read(partition)
        held = [identity for ids in query.sink.ids.values() for identity in ids]
    assert sorted(held) == sorted(part.every)


@pytest.fixture
def files(tmp_path):
    return SinkMemory(tmp_path / "memory")


def new(passage, rows):
    return [identity_of(passed) for passed in passage.new(rows)]


def names(files):
    return sorted(path.name for path in files.folder.iterdir())


def test_without_files_the_last_records_of_the_sink_are_known(files):
    sink = Sink()
    sink.ids[3] = ["a", "b", "c"]
    rows = [row(3, 70 + n, identity) for n, identity in enumerate("bcad")]
    passage = Passage(RULES, sink, files, rows[0])
    assert new(passage, rows) == ["a", "d"]


def test_what_a_first_batch_wrote_is_known_however_much_it_is(files):
    sink, rows = Sink(), [row(0, n, f"id {n}") for n in range(10)]
    for _ in range(2):
        sink.ids[0] += new(Passage(RULES, sink, files, rows[0]), rows)
    assert sink.ids[0] == [f"id {n}" for n in range(10)]


def test_what_has_no_id_gets_that_of_its_place(files):
    rows = [row(1, 5), row(1, 6, "a"), row(1, 7, "b", **{"sojourn-for": "an operator"})]
    assert new(Passage(RULES, Sink(), files, rows[0]), rows) == ["stream@m/1/5", "a"]
    plain = replace(RULES, mark="", inputs=SignedInputs())
    (passed,) = Passage(plain, Sink(), files, rows[0]).new(rows[:1])
    assert passed == rows[0]


def test_files_are_kept_until_the_batch_that_follows_is_committed(files):
    sink = Sink()
    for offset in (0, 4, 4, 8):
        rows = [row(2, offset + n, f"id {offset + n}") for n in range(4)]
        passage = Passage(RULES, sink, files, rows[0])
        sink.ids[2] += new(passage, rows)
        passage.save()
    assert names(files) == ["2-12", "2-8", "2-8.end", "2.claim"]
    files.load(22, 100)
    assert names(files) == ["2-12", "2-8", "2-8.end", "2.claim"]


def test_a_file_that_a_failed_batch_left_is_not_taken(files):
    """It has read more than the batch that was committed in its place."""
    sink, rows = Sink(), [row(0, n, f"id {n}") for n in range(4)]
    failed = Passage(RULES, sink, files, rows[0])
    new(failed, rows)
    failed.save()
    again = Passage(RULES, sink, files, rows[0])
    sink.ids[0] += new(again, rows[:2])
    again.save()
    sink.ids[0] += new(Passage(RULES, sink, files, rows[2]), rows[2:])
    assert sink.ids[0] == ["id 0", "id 1", "id 2", "id 3"]


def test_a_file_that_cannot_be_read_is_named(files):
    write_checked(files.folder / "0-7", b"hal")
    with pytest.raises(BadFile, match=r"0-7: cannot be read: .*--fresh"):
        Passage(RULES, Sink(), files, row(0, 7, "a"))


def test_a_memory_that_is_damaged_is_refused(files):
    rows = [row(0, 0, "id 0")]
    begun = Passage(RULES, Sink(), files, rows[0])
    new(begun, rows)
    begun.save()
    path = files.folder / "0-1"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(BadFile, match=r"0-1: is truncated: .*--fresh"):
        Passage(RULES, Sink(), files, row(0, 1, "id 1"))


def test_batches_that_spark_has_lost_are_written_once_all_the_same(tmp_path):
    """After a power failure it reads again what is at the sink already."""
    files, sink = SinkMemory(tmp_path / "memory", kept=3), Sink()
    rows = [row(0, offset, f"id {offset}") for offset in range(9)]

    def batch(first, end):
        passage = Passage(RULES, sink, files, rows[first])
        sink.ids[0] += new(passage, rows[first:end])
        passage.save()

    for first in range(0, 8, 2):
        batch(first, first + 2)
    batch(2, 5)  # from there on its commits are lost, and it ends elsewhere
    batch(5, 9)
    assert sink.ids[0] == [f"id {offset}" for offset in range(9)]


def test_memories_of_batches_that_spark_cannot_go_back_to_are_removed(tmp_path):
    files, sink = SinkMemory(tmp_path / "memory", kept=2), Sink()
    for offset in range(6):
        passage = Passage(RULES, sink, files, row(0, offset, f"id {offset}"))
        new(passage, [row(0, offset, f"id {offset}")])
        passage.save()
    left = {path.name for path in files.folder.glob("0-*") if path.suffix != ".end"}
    assert left == {"0-3", "0-4", "0-5", "0-6"}


class Clock:
    """A clock that is set by the test, and goes on while somebody waits."""

    def __init__(self):
        self.now_s, self.waited_s = 100.0, []

    def __call__(self):
        return self.now_s

    def wait(self, seconds):
        self.waited_s.append(seconds)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def claim(tmp_path, clock):
    return lambda: Claim(tmp_path, 3, clock=clock, wait=clock.wait)


def test_a_task_that_comes_back_ends_before_it_passes_on_anything(claim, clock):
    first, second = claim(), claim()
    assert first.take() is None
    clock.now_s += 60.0  # in which it is cut off
    assert second.take() >= 0.0
    with pytest.raises(EngineError, match="another task has taken over partition 3"):
        first.renew()
    with pytest.raises(EngineError, match="another task has taken over partition 3"):
        first.check()
    second.check()


def test_the_file_is_not_read_for_every_record(claim, clock, tmp_path):
    held = claim()
    held.take()
    (tmp_path / "3.claim").unlink()
    clock.now_s += 0.4
    held.renew()
    clock.now_s += 0.2
    with pytest.raises(FileNotFoundError):
        held.renew()


def test_who_takes_over_waits_until_what_was_sent_is_too_old(claim, clock, tmp_path):
    claim().take()
    os.utime(tmp_path / "3.claim", (0.0, (tmp_path / "3.claim").stat().st_mtime - 4.0))
    after = claim()
    after.outwait(after.take(), fence_s=10.0)
    (waited_s,) = clock.waited_s
    assert waited_s == pytest.approx(6.5, abs=1.0)
    after.outwait(60.0, fence_s=10.0)
    after.outwait(None, fence_s=10.0)
    assert len(clock.waited_s) == 1


def test_claims_are_renewed_while_a_task_passes_records_on(claim, clock, tmp_path):
    held = claim()
    held.take()
    os.utime(tmp_path / "3.claim", (0.0, 0.0))
    clock.now_s += 1.0
    held.renew()
    assert (tmp_path / "3.claim").stat().st_mtime > 0.0

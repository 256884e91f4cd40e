"""What batches leave to each other survives a crash at any moment: on real files."""

import tempfile
from contextlib import suppress
from itertools import combinations
from pathlib import Path

import pytest

from sojourn.host.messages import Hello, Record
from sojourn.spark.carry_over import CarryOver
from sojourn.spark.headers import Lineage

PARTITION, SERVICE, ROOTS = 3, 3, 4


def passed(number):
    name = f"in/0/{number}"
    lineage = Lineage(identity=name, root=name, birth_s=0.0, written_s=0.0, blobs={})
    return lineage, Record(number, name, b"{}", stream="in")


def hello(batch):
    return Hello("query", PARTITION, batch)


class Crash(Exception):
    """Everything is gone but the files, and what has arrived."""


class Spark:
    """Batches of two roots, each in service for three batches; a crash at steps of choice.

    Where commits are *late*, as Spark has them by default, a batch is committed when the next
    one has begun.
    """

    def __init__(self, folder, crashes, *, late=False):
        self.files, self.late = CarryOver(folder), late
        self.crashes, self.steps = set(crashes), 0
        self.committed, self.offset = -1, 0
        self.arrived = []

    def run(self):
        while True:
            with suppress(Crash):
                self.live()
                return

    def live(self):
        """Run from what is committed until all is done, or a crash."""
        batch, offset, ages = self.committed + 1, self.offset, {}
        pending = None
        while True:
            taken = [record.number for _, record in self.files.load(hello(batch))]
            self.step()
            if pending is not None:
                self.committed, self.offset = pending
                self.step()
            news = list(range(offset, min(offset + 2, ROOTS)))
            offset += len(news)
            here = {number: ages.get(number, 0) + 1 for number in (*taken, *news)}
            done = [number for number, age in here.items() if age >= SERVICE]
            self.arrived += done
            self.step()
            ages = {number: age for number, age in here.items() if number not in done}
            self.files.save(hello(batch), [passed(number) for number in ages])
            self.step()
            if self.late:
                pending = batch, offset
            else:
                self.committed, self.offset = batch, offset
                self.step()
            if offset == ROOTS and not ages:
                return
            batch += 1

    def step(self):
        self.steps += 1
        if self.steps in self.crashes:
            raise Crash


def arrived(crashes, *, late=False):
    """Return what arrived with these crashes, and how many steps it took."""
    with tempfile.TemporaryDirectory() as folder:
        spark = Spark(Path(folder), crashes, late=late)
        spark.run()
        return spark.arrived, spark.steps


def test_nothing_is_lost_whenever_it_crashes():
    whole, steps = arrived([])
    assert whole == list(range(ROOTS))
    for crashes in (*combinations(range(1, steps + 1), 1), *combinations(range(1, steps), 2)):
        assert set(arrived(crashes)[0]) == set(whole), crashes


def test_with_commits_after_the_next_batch_has_begun_records_would_be_lost():
    _, steps = arrived([], late=True)
    lost = [
        crash for crash in range(1, steps) if len(set(arrived([crash], late=True)[0])) < ROOTS
    ]
    assert lost


@pytest.fixture
def files(tmp_path):
    return CarryOver(tmp_path / "carried")


def names(files):
    return sorted(path.name for path in files.folder.iterdir())


def test_what_a_batch_left_stays_until_the_one_that_took_it_over_is_committed(files):
    for batch in (4, 5):
        files.save(hello(batch), [passed(batch)])
        files.load(hello(batch + 1))
    assert names(files) == ["3-5"]
    for _ in range(2):  # a batch that is repeated brings the same
        assert files.load(hello(6)) == [passed(5)]


def test_a_batch_that_is_repeated_replaces_what_it_left(files):
    files.save(hello(4), [passed(1), passed(2)])
    files.save(hello(4), [passed(2)])
    assert files.load(hello(5)) == [passed(2)]
    files.save(hello(4), [])
    assert files.load(hello(5)) == []


def test_a_file_that_was_not_finished_is_removed_and_those_of_other_tasks_are_not(files):
    files.save(hello(4), [passed(1)])
    (files.folder / "3-5.new").write_bytes(b"hal")
    (files.folder / "33-2").write_bytes(b"")
    (files.folder / "33-5.new").write_bytes(b"hal")
    assert files.load(hello(5)) == [passed(1)]
    assert names(files) == ["3-4", "33-2", "33-5.new"]


def test_a_file_is_on_the_disk_and_so_is_its_name(files, monkeypatch):
    synced = []
    monkeypatch.setattr(
        "os.fsync", lambda opened: synced.append(Path(f"/proc/self/fd/{opened}").readlink())
    )
    files.save(hello(4), [passed(1)])
    assert synced[-2:] == [files.folder / "3-4.new", files.folder]

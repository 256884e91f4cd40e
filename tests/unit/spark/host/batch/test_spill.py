"""What an operator has beyond its share: on disk, in order, and nobody beside it waits."""

import os

import pytest

from small_disk import mounted
from sojourn.decide.plan import HERE
from sojourn.errors import BadFile, DiskFull, EngineError
from sojourn.files.durable_file import write_checked
from sojourn.spark.host.batch.cut import Cut, CutId, OpenRecord, floors
from sojourn.spark.host.batch.cut_store import CutFiles
from sojourn.spark.host.batch.ledger import Ledger
from sojourn.spark.host.batch.spill import Spill
from sojourn.spark.host.desk.admission import Limits
from sojourn.spark.host.desk.events import (
    CutSaved,
    PlacementAsked,
    ProcessorDone,
    ProcessorReady,
    RelayCame,
    RelayEnded,
    RelayLeft,
    RelaysCounted,
    RowsCame,
)
from sojourn.spark.host.desk.instructions import AtOperator, Give, SaveCut, StartProcessor
from sojourn.spark.host.desk.operator_desk import OperatorDesk
from sojourn.spark.host.desk.part_desk import PartDesk
from sojourn.spark.host.desk.part_graph import PartGraph
from sojourn.spark.wire.processor import Result
from sojourn.spark.wire.record import Record, Root
from sojourn.spark.wire.relay import Row

LINES = ("lines", 0)
BRANCHES = PartGraph(readers={"lines": ("slow", "fast")}, emits={"slow": (), "fast": ()})


class Part:
    """A part with files, one relay, and one processor for each operator."""

    def __init__(self, folder, graph, limits, *, processors=1):
        self.files = CutFiles(folder)
        self.ledger = Ledger(self.files, Spill(self.files.segments, most=3))
        operators = dict.fromkeys(name for names in graph.readers.values() for name in names)
        desks = {name: OperatorDesk() for name in operators}
        self.desk = PartDesk(graph, desks, self.ledger, limits=limits)
        self.given = {name: [] for name in operators}
        for name in operators:
            for each in self.desk.handle(PlacementAsked(name, {HERE: processors}), 0.0):
                if isinstance(each.instruction, StartProcessor):
                    self.do(
                        self.desk.handle(ProcessorReady(name, each.instruction.processor), 0.0)
                    )
        self.do(self.desk.handle(RelayCame(1, CutId(0, 1)), 0.0))

    def do(self, instructions):
        for each in instructions:
            match each:
                case AtOperator(name, Give(_, records)):
                    self.given[name] += [record.name for record in records]
                case SaveCut(cut):
                    self.files.save(cut)
                    self.do(self.desk.handle(CutSaved(cut.id), 0.0))

    def take(self, numbers, key=None, relay=1):
        for number in numbers:
            record = Record(f"lines/0/{number}", b"{}", "lines", root=f"lines/0/{number}")
            row = Row(LINES, number, record, {"slow": key})
            self.do(self.desk.handle(RowsCame(relay, [row]), 0.0))

    def work(self, operator):
        self.do(self.desk.handle(ProcessorDone(operator, 1, [Result([], took_s=1.0)]), 1.0))

    def cut(self):
        self.do(self.desk.handle(RelaysCounted(CutId(self.ledger.batch, 1), 1), 0.0))
        self.do(self.desk.handle(RelayEnded(1), 0.0))
        return self.files.load(CutId(self.ledger.batch, 1))


def names(numbers):
    return [f"lines/0/{number}" for number in numbers]


def test_a_slow_operator_spills_and_the_one_beside_it_has_all(tmp_path):
    part = Part(tmp_path, BRANCHES, Limits(records=8))
    for number in range(20):
        part.take([number])
        part.work("fast")
    assert part.given["fast"] == names(range(20))
    assert part.given["slow"] == names([0])
    assert part.ledger.spill.waiting("slow") == 20 - 1 - 4  # in service, and its share
    assert part.desk.admission.closed_by == ()
    for _ in range(20):
        part.work("slow")
    assert part.given["slow"] == names(range(20))  # in order
    assert part.desk.inside == 0


def test_what_was_spilled_is_open_in_a_cut_and_goes_on_from_it(tmp_path):
    part = Part(tmp_path, BRANCHES, Limits(records=4))
    part.take(range(9), key="k")
    cut = part.cut()
    assert floors(cut) == {LINES: 0}
    assert sum(segment.records for segment in cut.spilled) == 2 * 9 - len(cut.open)
    part.work("slow")  # after the cut: it does not count
    other = Part(tmp_path, BRANCHES, Limits(records=4))
    other.do(other.desk.handle(RelayCame(2, CutId(1, 2)), 0.0))
    assert other.desk.inside == 18
    other.take(range(9, 14), key="k", relay=2)
    for _ in range(14):
        other.work("slow")
        other.work("fast")
    assert other.given == {"slow": names(range(14)), "fast": names(range(14))}
    assert other.desk.inside == 0


def test_segments_are_removed_once_the_cut_that_names_them_is_past(tmp_path):
    part = Part(tmp_path, BRANCHES, Limits(records=4))
    part.take(range(6))
    part.cut()
    for _ in range(6):
        part.work("slow")
        part.work("fast")
    assert list((tmp_path / "segments").iterdir())  # the cut of batch 0 names them
    for batch in (1, 2, 3):
        part.desk.handle(RelayLeft(1), 0.0)
        part.do(part.desk.handle(RelayCame(1, CutId(batch, 1)), 0.0))
        part.cut()
    assert not list((tmp_path / "segments").iterdir())


def test_segments_stay_for_as_many_batches_as_their_records_wait(tmp_path):
    """Each cut names them again; they were written before the oldest batch that is kept."""
    part = Part(tmp_path, BRANCHES, Limits(records=4))
    part.take(range(6))
    part.cut()
    for batch in (1, 2, 3):
        part.desk.handle(RelayLeft(1), 0.0)
        part.do(part.desk.handle(RelayCame(1, CutId(batch, 1)), 0.0))
        part.cut()
    for _ in range(6):
        part.work("slow")
        part.work("fast")
    assert part.given == {"slow": names(range(6)), "fast": names(range(6))}


def test_nobody_beside_it_the_entry_is_closed_and_says_by_whom(tmp_path):
    chain = PartGraph(
        readers={"lines": ("split",), "words": ("store",)},
        emits={"split": ("words",), "store": ()},
    )
    part = Part(tmp_path, chain, Limits(records=8))
    for number in range(4):
        record = Record(f"words-{number}", b"{}", "words", root=f"lines/0/{number}")
        part.do(part.desk.handle(RowsCame(1, [Row(LINES, number, record)]), 0.0))
    assert part.desk.admission.closed_by == ()
    record = Record("words-4", b"{}", "words", root="lines/0/4")
    part.do(part.desk.handle(RowsCame(1, [Row(LINES, 4, record)]), 0.0))
    assert part.desk.admission.closed_by == ("store",)
    assert part.ledger.spill.waiting("store") == 0  # it waits in Kafka
    part.work("store")
    assert part.desk.admission.closed_by == ()


@pytest.mark.parametrize("limits", [{"spilled": 3}, {"spilled_bytes": 6}])
def test_what_is_spilled_is_bounded(tmp_path, limits):
    part = Part(tmp_path, BRANCHES, Limits(records=4, **limits))
    for number in range(6):
        part.take([number])
        part.work("fast")
    assert part.ledger.spill.waiting("slow") == 3
    assert part.desk.admission.closed_by == ("slow",)


def test_large_records_are_spilled_though_they_are_few(tmp_path):
    part = Part(tmp_path, BRANCHES, Limits(bytes=8))
    part.take(range(4))
    assert part.ledger.spill.waiting("slow") == 2


@pytest.mark.parametrize(
    "large", [{"message_key": b"12345678"}, {"others": (("trace", b"1234"),)}, {"key": "12345"}]
)
def test_keys_and_headers_count_as_well_as_payloads(tmp_path, large):
    """What comes of a record has its message key too: it may be most of what is in memory."""
    part = Part(tmp_path, BRANCHES, Limits(bytes=16))
    for number in range(4):
        record = Record(f"lines/0/{number}", b"", "lines", root=f"lines/0/{number}", **large)
        part.do(part.desk.handle(RowsCame(1, [Row(LINES, number, record)]), 0.0))
    assert part.ledger.spill.waiting("slow") >= 2


def test_a_segment_that_cannot_be_written_or_read_says_why(tmp_path, monkeypatch):
    files = CutFiles(tmp_path)
    records = [OpenRecord(Root(LINES, 0), "slow", Record("lines/0/0", b"{}"))]
    name = files.segments.write(0, records)
    assert files.segments.read(name) == records
    write_checked(tmp_path / "segments" / name, b"\x93\x01")
    with pytest.raises(BadFile, match="cannot be read"):
        files.segments.read(name)
    (tmp_path / "segments" / name).unlink()
    segments = Spill(files.segments)
    segments.put(0, records[0])
    cut = Cut(id=CutId(0, 1), taken={LINES: 1}, spilled=segments.segments(0))
    monkeypatch.setattr(os, "fsync", _full)
    with pytest.raises(EngineError, match="No space left"):
        files.save(cut)
    (tmp_path / "segments").rename(tmp_path / "elsewhere")
    (tmp_path / "segments").touch()
    with pytest.raises(EngineError, match=r"spilled records \(.*\) cannot be written: "):
        files.segments.write(0, records)


def _full(_file):
    raise OSError(28, "No space left on device")


def test_segments_for_which_there_is_no_room_stay_in_memory_until_there_is(tmp_path):
    """They are written while something is decided, and that must not be broken off."""
    records = [OpenRecord(Root(LINES, 0), "slow", Record("lines/0/0", bytes(9000)), 1)]
    with mounted(tmp_path / "disk", 64 << 10) as disk:
        files = CutFiles(disk.folder)
        files.flush()
        disk.fill()
        names = [files.segments.write(batch, records) for batch in range(3)]
        assert [files.segments.read(name) for name in names] == [records] * 3
        for write in (files.flush, lambda: files.append([])):
            with pytest.raises(DiskFull, match="spilled records"):
                write()
        files.segments.drop(2, names[1:2])
        disk.free()
        files.flush()
        left = sorted(path.name for path in (disk.folder / "segments").iterdir())
        assert left == sorted(names[1:])
        assert CutFiles(disk.folder).segments.read(names[2]) == records

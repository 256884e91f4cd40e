"""What a part keeps of broadcast streams: it is in its cuts, and comes back with them."""

import pytest

from sojourn.decide.plan import HERE
from sojourn.spark.host.batch.cut import CutId
from sojourn.spark.host.batch.cut_store import CutFiles
from sojourn.spark.host.batch.ledger import Ledger
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
from sojourn.spark.wire.record import Record
from sojourn.spark.wire.relay import Row

GRAPH = PartGraph(readers={"rules": ("match",)}, everyone=frozenset([("match", "rules")]))


class Part:
    """A part of one operator, whose cuts are files."""

    def __init__(self, files):
        self.files, self.ledger = files, Ledger(files)
        self.desk = PartDesk(GRAPH, {"match": OperatorDesk()}, self.ledger)

    def start(self, processors=1):
        """Return what processors that start now are told first."""
        started = self.desk.handle(PlacementAsked("match", {HERE: processors}), 0.0)
        return [
            give
            for start in at_operator(StartProcessor, started)
            for give in told(self.desk.handle(ProcessorReady("match", start.processor), 0.0))
        ]

    def begin(self, batch, attempt=1):
        """Return what processors are told when a batch begins."""
        return told(self.desk.handle(RelayCame(batch, CutId(batch, attempt)), 0.0))

    def rules(self, batch, *numbered):
        """Bring rules, each a number with a key, and let the only processor do them."""
        for number, key in numbered:
            row = Row(
                ("rules", 0), number, Record(f"rule-{number}", b"{}", "rules"), {"match": key}
            )
            self.desk.handle(RowsCame(batch, [row]), 0.0)
            self.desk.handle(ProcessorDone("match", 1, [Result([])]), 1.0)

    def end(self, batch, attempt=1):
        """End a batch, whose cut is saved."""
        self.desk.handle(RelaysCounted(CutId(batch, attempt), 1), 0.0)
        (save,) = [
            i for i in self.desk.handle(RelayEnded(batch), 0.0) if isinstance(i, SaveCut)
        ]
        self.files.save(save.cut)
        self.desk.handle(CutSaved(save.cut.id), 0.0)
        self.desk.handle(RelayLeft(batch), 0.0)


def at_operator(kind, instructions):
    at = [i.instruction for i in instructions if isinstance(i, AtOperator)]
    return [instruction for instruction in at if isinstance(instruction, kind)]


def told(instructions):
    """Return the names of what processors are told that they only have to know."""
    return [
        [record.name for record in give.records]
        for give in at_operator(Give, instructions)
        if not give.new
    ]


@pytest.fixture
def files(tmp_path):
    """Return the cuts of a part that has ended with two rules."""
    files = CutFiles(tmp_path)
    part = Part(files)
    part.start()
    part.begin(0)
    part.rules(0, (0, "a"), (1, "b"), (2, "a"))
    part.end(0)
    return files


def test_what_is_kept_goes_on_through_batches(files):
    part = Part(files)
    part.start()
    part.begin(1)
    part.end(1)
    (kept,) = files.load(files.last(1)).latest.values()
    assert [record.name for record in kept] == ["rule-1", "rule-2"]


def test_processors_of_the_next_host_are_told_whenever_they_start(files):
    """Before its first relay, when the cut is not read yet, or after it."""
    before = Part(files)
    assert before.start(2) == []
    assert before.begin(1, attempt=2) == [["rule-1", "rule-2"]] * 2
    after = Part(files)
    after.begin(1, attempt=2)
    assert after.start(2) == [["rule-1", "rule-2"]] * 2


def test_a_batch_that_goes_on_from_memory_tells_nobody_again(files):
    part = Part(files)
    part.start()
    part.begin(1)
    part.desk.handle(ProcessorDone("match", 1, [Result([])] * 2), 1.0)
    part.rules(1, (3, "b"))
    part.end(1)
    assert part.begin(2) == []
    assert part.desk.handle(PlacementAsked("match", {HERE: 2}), 2.0)
    assert told(part.desk.handle(ProcessorReady("match", 2), 2.0)) == [["rule-2", "rule-3"]]

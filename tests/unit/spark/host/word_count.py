"""A host that counts words, on real files; whoever uses it decides what happens next."""

from sojourn.decide.plan import HERE
from sojourn.spark.host.batch.cut import CutId
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
    RelaysCaughtUp,
    RelaysCounted,
    RowsCame,
)
from sojourn.spark.host.desk.instructions import (
    AtOperator,
    FinishRelay,
    Give,
    HandOver,
    KillProcessor,
    RefuseRelay,
    SaveCut,
    StartProcessor,
)
from sojourn.spark.host.desk.operator_desk import OperatorDesk
from sojourn.spark.host.desk.part_desk import PartDesk
from sojourn.spark.host.desk.part_graph import PartGraph
from sojourn.spark.host.state.keyed_state import MergeState
from sojourn.spark.wire.processor import OutputRecord, Result
from sojourn.spark.wire.record import Record
from sojourn.spark.wire.relay import Row

LINES = ("lines", 0)
GRAPH = PartGraph(
    readers={"lines": ("split",), "words": ("count",)},
    emits={"split": ("words",), "count": ("counts",)},
    leaving=frozenset(["counts"]),
    stateful=frozenset(["count"]),
)


class WordCountHost:
    """Lines are split into words, which are counted by key.

    Instructions are carried out at once, as a host does, but for what processors were *given*,
    cuts that are to be saved (*saving*) and states to be merged (*merging*): those wait.
    """

    def __init__(self, folder, *, processors=2, took_s=1.0, spills=False, **most):
        self.files = CutFiles(folder, "layout")
        self.ledger = Ledger(
            self.files, Spill(self.files.segments, most=1) if spills else None, **most
        )
        limits = {"limits": Limits(records=1, spilled=100)} if spills else {}
        self.desk = PartDesk(
            GRAPH, {"split": OperatorDesk(), "count": OperatorDesk()}, self.ledger, **limits
        )
        self.took_s, self.given, self.saving, self.merging = took_s, {}, [], []
        self.written, self.finished, self.refused = [], [], {}
        for operator in GRAPH.emits:
            self.decide(PlacementAsked(operator, {HERE: processors}))

    def decide(self, event):
        """Let an event be decided, logged and done, in this order."""
        instructions = self.desk.handle(event, 0.0)
        self.files.log.append(self.ledger.unlogged())
        self._let_go()
        for instruction in instructions:
            self._do(instruction)

    def _let_go(self):
        """Close the store: hosts of a test are one process, which can open it only once."""
        self.files.state.close()

    def _do(self, instruction):
        match instruction:
            case HandOver(_, leaving):
                self.written.append((leaving.record.name, leaving.record.payload.decode()))
            case SaveCut(cut, changed):
                self.saving.append((cut, changed))
            case MergeState():
                self.merging.append(instruction)
            case FinishRelay(relay):
                self.finished.append(relay)
            case RefuseRelay(relay, reason):
                self.refused[relay] = reason
            case AtOperator(operator, StartProcessor(number)):
                self.decide(ProcessorReady(operator, number))
            case AtOperator(operator, Give(number) as give):
                self.given[operator, number] = give
            case AtOperator(operator, KillProcessor(number)):
                self.given.pop((operator, number), None)

    # -- what happens ------------------------------------------------------------------------

    def relay_comes(self, relay, *, batch, attempt):
        """Let the only relay of a batch begin."""
        self.decide(RelayCame(relay, CutId(batch, attempt)))
        self.decide(RelaysCounted(CutId(batch, attempt), 1))
        while self.ledger.leaving.in_log:
            self.decide(RelaysCaughtUp())

    def take(self, relay, lines, first=0, names=None):
        """Let a relay bring lines, the first of which has that offset."""
        rows = []
        for offset, line in enumerate(lines, first):
            name = f"line {offset}" if names is None else names[offset]
            rows.append(Row(LINES, offset, Record(name, line.encode(), "lines", root=name)))
        self.decide(RowsCame(relay, rows))

    def work(self, operator, processor):
        """Let a processor do what it was given, with the states it was lent."""
        give = self.given.pop((operator, processor))
        results, states = [], dict(give.states or {})
        for record in give.records:
            text = record.payload.decode()
            if operator == "split":
                outputs = [
                    OutputRecord("words", word.encode(), keys={"count": word})
                    for word in text.split()
                ]
                results.append(Result(outputs, took_s=self.took_s))
            else:
                state = states[text] = b"%d" % (int(states[text] or 0) + 1)
                outputs = [OutputRecord("counts", b"%b %b" % (record.payload, state))]
                results.append(Result(outputs, took_s=self.took_s, state=state))
        self.decide(ProcessorDone(operator, processor, results))

    def work_off(self):
        """Let processors work until none has anything to do."""
        while self.given:
            self.work(*min(self.given))

    def end_batch(self, relay):
        """Let a relay have read all; return once its cut is on disk."""
        self.decide(RelayEnded(relay))
        for cut, changed in self.saving:
            self.files.save(cut, changed)
            self.decide(CutSaved(cut.id))
        self.saving.clear()

    def merge(self):
        """Put what is committed into the store."""
        for merge in self.merging:
            self.files.state.merge(merge)
            self.ledger.state.merged(merge.upto)
        self.merging.clear()
        self._let_go()

    def counts(self, *words):
        """Return the states of words."""
        found = {word: int(self.ledger.state.of("count", word) or 0) for word in words}
        self._let_go()
        return found

    def stored(self):
        """Return the states of the store alone, by word."""
        found = {word: int(state) for word, state in self.files.state.states("count")}
        self._let_go()
        return found

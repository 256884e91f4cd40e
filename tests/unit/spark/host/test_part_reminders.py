"""Reminders and states that are due together, at the desk: records are served in between."""

from sojourn.spark.host.batch.cut import Cut, CutId
from sojourn.spark.host.batch.host_log import Entered
from sojourn.spark.host.batch.ledger import Ledger
from sojourn.spark.host.desk.events import (
    DrainAsked,
    RelayCame,
    RelayEnded,
    RelaysCounted,
    RowsCame,
    TimePassed,
)
from sojourn.spark.host.desk.instructions import CountArrival, SaveCut
from sojourn.spark.host.desk.operator_desk import OperatorDesk
from sojourn.spark.host.desk.part_desk import PartDesk
from sojourn.spark.host.desk.part_graph import PartGraph
from sojourn.spark.host.state.keyed_state import KeyedState
from sojourn.spark.host.state.part_clock import PartClock
from sojourn.spark.host.state.reminders import Reminders
from sojourn.spark.wire.record import Record
from sojourn.spark.wire.relay import Row
from unit.spark.host.spark_stand_in import Disk, World

DUE, AT_ONCE = 1700, 1000
REMINDERS = "count@reminders"
GRAPH = PartGraph(
    readers={"lines": ("count",), REMINDERS: ("count",)},
    emits={"count": ()},
    stateful=frozenset(["count"]),
)


class Morning:
    """A part that starts when many reminders are due, with one relay."""

    def __init__(self):
        self.now_s, self.disk = 1000.0, Disk()
        asked, state = self.reminders(KeyedState(self.disk))
        for number in range(DUE):
            record = Record(f"lines/0/{number}", b"", key=f'["{number}"]', position="lines/0/1")
            for change in asked.asked("count", record, [(60.0, "")]):
                state.change(*change)
        cuts, changed = state.cut(CutId(0, 1))
        cut = Cut(id=CutId(0, 1), taken={}, changed=cuts, reminded={(REMINDERS, 0): 0})
        self.disk.save(cut, changed)
        self.disk.committed, self.now_s = 0, 2000.0
        self.start()

    def clock(self):
        return PartClock(lambda: self.now_s, lambda: self.now_s)

    def reminders(self, state):
        return Reminders(state, {"count": REMINDERS}, self.clock()), state

    def start(self, attempt=2):
        reminded = {"count": REMINDERS}
        self.ledger = Ledger(self.disk, reminded=reminded, clock=self.clock())
        self.desk = PartDesk(GRAPH, {"count": OperatorDesk()}, self.ledger)
        self.came = _came(self.desk.handle(RelayCame(1, CutId(1, attempt)), 0.0))
        self.desk.handle(RelaysCounted(CutId(1, attempt), 1), 0.0)

    @property
    def is_at_once(self):
        return self.desk.due_s is not None and self.desk.due_s <= self.now_s


def _came(instructions):
    return [each.record.name for each in instructions if isinstance(each, CountArrival)]


def test_many_come_a_thousand_at_a_time_at_most_and_records_in_between():
    morning = Morning()
    steps = [morning.came]
    row = Row(("lines", 0), 7, Record("lines/0/7", b"", "lines"), {"count": '["7"]'})
    steps.append(_came(morning.desk.handle(RowsCame(1, [row]), 0.0)))
    assert steps[1][-1] == "lines/0/7"
    while morning.is_at_once:
        morning.ledger.unlogged()
        steps.append(_came(morning.desk.handle(TimePassed(), 0.0)))
        entries = [each for each in morning.ledger.unlogged() if isinstance(each, Entered)]
        assert len(entries) <= AT_ONCE
    assert max(map(len, steps)) <= AT_ONCE
    came = [name for step in steps for name in step]
    assert len(came) == len(set(came)) == DUE + 1


def test_those_that_have_not_come_by_a_cut_are_pending_in_it():
    """They come to the next host, above all that the cut says is done."""
    morning = Morning()
    first = morning.came
    (save,) = [
        each for each in morning.desk.handle(RelayEnded(1), 0.0) if isinstance(each, SaveCut)
    ]
    assert save.cut.reminded == {(REMINDERS, 0): len(first)}
    state = KeyedState(morning.disk)
    morning.disk.save(save.cut, save.changed)
    state.restore(save.cut.changed)
    pending = state.ordered(REMINDERS, "", "9", most=DUE)[0]
    assert len(pending) + len(save.cut.open) == DUE
    again, state = morning.reminders(state)
    again.restore(save.cut.reminded)
    for change, record in again.due():
        state.change(*change)
        assert record.root.offset >= len(first)


def test_a_host_that_dies_before_the_first_cut_leaves_its_clock_in_the_log():
    """What was asked for by then is not late by as much as the wall clock is set back."""
    world = World()
    for _ in range(2):
        world.launch()
        world.start()
        world.say(0)
        before_s = world.host.ledger.clock.now_s()
        world.kill_driver(0)
        world.clock_jumps(0)
    world.launch()
    world.start()
    world.say(0)
    assert world.host.ledger.clock.now_s() == before_s == 1e9


def test_none_come_while_it_ends_in_order():
    morning = Morning()
    morning.desk.handle(DrainAsked(), 0.0)
    assert morning.desk.due_s is None
    assert _came(morning.desk.handle(TimePassed(), 0.0)) == []

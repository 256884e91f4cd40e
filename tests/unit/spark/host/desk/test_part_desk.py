"""A part by hand: who gets what, what is forgotten, and how much is taken."""

from dataclasses import replace

import msgspec
import pytest
from hypothesis import given as given_any
from hypothesis import strategies as st

from sojourn.app.operator import OnError
from sojourn.decide.plan import HERE
from sojourn.spark.host.batch.cut import Cut, CutId, OpenRecord
from sojourn.spark.host.batch.ledger import Ledger
from sojourn.spark.host.desk.admission import Limits
from sojourn.spark.host.desk.events import (
    PlacementAsked,
    ProcessorDone,
    ProcessorEnded,
    ProcessorReady,
    RelayCame,
    RowsCame,
    TimePassed,
)
from sojourn.spark.host.desk.instructions import (
    AtOperator,
    CountArrival,
    Give,
    GrantRelay,
    HandOver,
    RefuseRelay,
    Restore,
    StartProcessor,
    StopPart,
)
from sojourn.spark.host.desk.operator_desk import OperatorDesk
from sojourn.spark.host.desk.part_desk import PartDesk
from sojourn.spark.host.desk.part_graph import PartGraph
from sojourn.spark.wire.processor import OutputRecord, Result
from sojourn.spark.wire.record import Record, Root
from sojourn.spark.wire.relay import DeadResult, Row
from unit.spark.host.spark_stand_in import Disk

LINES = ("lines-topic", 0)
GRAPH = PartGraph(
    readers={"lines": ("split", "log"), "words": ("count",)},
    emits={"split": ("words",), "log": (), "count": ()},
    leaving=frozenset(["words"]),
)


def part(store=None, then="stop", **settings):
    """Return a part whose operators have one processor each that is ready, and one relay."""
    on_error = OnError(retries=0, then=then)
    desks = {name: OperatorDesk(on_error=on_error) for name in ("split", "log", "count")}
    made = PartDesk(GRAPH, desks, Ledger(store or Disk()), **settings)
    for name in desks:
        for started in of(StartProcessor, made.handle(PlacementAsked(name, {HERE: 1}), 0.0)):
            made.handle(ProcessorReady(name, started.processor), 0.0)
    return made


def test_messages_without_a_value_are_for_those_that_ask_and_counted_at_others():
    graph = replace(GRAPH, nulls=frozenset(["log"]))
    desks = {name: OperatorDesk() for name in ("split", "log", "count")}
    ledger = Ledger(Disk())
    made = PartDesk(graph, desks, ledger)
    came(made, 1)
    null = msgspec.structs.replace(line(7), null=True)
    arrived = of(CountArrival, made.handle(RowsCame(1, [null, line(8)]), 0.0))
    assert [(each.operator, each.record.name) for each in arrived] == [
        ("log", "lines/0/7"),
        ("split", "lines/0/8"),
        ("log", "lines/0/8"),
    ]
    assert made.nulls == {"split": 1}
    assert ledger.taken == {LINES: 9}
    assert made.visits.of_all()[LINES[0]]["split"] == 0.5


def came(made, relay, batch=0, attempt=1):
    return made.handle(RelayCame(relay, CutId(batch, attempt)), 0.0)


def line(number):
    name = f"lines/0/{number}"
    return Row(LINES, number, Record(name, b"{}", "lines", root=name))


def of(kind, instructions):
    at = [i.instruction if isinstance(i, AtOperator) else i for i in instructions]
    return [instruction for instruction in at if isinstance(instruction, kind)]


def given(instructions):
    """Return who is given which records."""
    return {
        i.operator: [record.name for record in i.instruction.records]
        for i in instructions
        if isinstance(i, AtOperator) and isinstance(i.instruction, Give)
    }


def test_a_record_goes_to_all_who_read_it_and_what_they_send_to_the_next_and_out():
    made = part()
    came(made, 7)
    assert given(made.handle(RowsCame(7, [line(0)]), 0.0)) == {
        "split": ["lines/0/0"],
        "log": ["lines/0/0"],
    }
    made.handle(ProcessorDone("log", 1, [Result([])]), 1.0)
    done = made.handle(
        ProcessorDone("split", 1, [Result([OutputRecord("words", b"w")] * 2)]), 2.0
    )
    assert given(done) == {"count": ["lines/0/0.split.0"]}  # it has one processor
    results = [(i.relay, i.leaving.root, i.leaving.record.name) for i in of(HandOver, done)]
    assert results == [(7, Root(LINES, 0), f"lines/0/0.split.{n}") for n in range(2)]
    assert made.inside == 2


def test_a_record_that_fails_is_a_dead_letter_that_leaves_or_stops_the_part():
    made = part(then="dead_letter")
    came(made, 7)
    made.handle(RowsCame(7, [line(0)]), 0.0)
    (handed,) = of(
        HandOver, made.handle(ProcessorDone("split", 1, [Result([], "ValueError")]), 1.0)
    )
    assert isinstance(handed.leaving.letter, DeadResult)
    assert handed.leaving.letter.operator == "split"
    made = part()
    came(made, 7)
    made.handle(RowsCame(7, [line(0)]), 0.0)
    (stop,) = of(
        StopPart, made.handle(ProcessorDone("split", 1, [Result([], "ValueError")]), 1.0)
    )
    assert (stop.record.operator, stop.record.record.name, stop.reason) == (
        "split",
        "lines/0/0",
        "ValueError",
    )
    assert made.inside == 2  # it stays open, and so in the next cut


def test_no_more_is_taken_than_there_is_room_for():
    made = part(limits=Limits(records=4))
    (grant,) = of(GrantRelay, came(made, 7))
    assert grant.number == 1  # what it will bring is not known
    # each line is read twice: there is room for one more, though more could be in hand
    (grant,) = of(GrantRelay, made.handle(RowsCame(7, [line(0)]), 0.0))
    assert grant.number == 1
    assert of(GrantRelay, made.handle(RowsCame(7, [line(1)]), 0.0)) == []
    assert made.inside == 4
    made.handle(ProcessorDone("log", 1, [Result([])]), 1.0)
    assert of(GrantRelay, made.handle(ProcessorDone("split", 1, [Result([])]), 1.0)) == [
        GrantRelay(7, 1)
    ]


def test_credit_of_a_relay_is_never_used_up_and_comes_for_many_records_together():
    """Light records come one at a time, and each is done before the next."""
    made = part()
    credit = sum(grant.number for grant in of(GrantRelay, came(made, 7)))
    told = 0
    for number in range(1000):
        assert credit > 0
        happened = made.handle(RowsCame(7, [line(number)]), 0.0)
        for operator in ("log", "split"):
            happened += made.handle(ProcessorDone(operator, 1, [Result([], took_s=1e-5)]), 0.0)
        grants = of(GrantRelay, happened)
        credit += sum(grant.number for grant in grants) - 1
        told += len(grants)
    assert told < 20


def test_a_restored_part_forgets_what_processors_are_at():
    store = Disk()
    made = part(store)
    came(made, 7)
    made.handle(RowsCame(7, [line(0)]), 0.0)
    kept = line(5).record
    cut = Cut(id=CutId(0, 2), taken={LINES: 6}, open=(OpenRecord(Root(LINES, 5), "log", kept),))
    store.cuts[cut.id] = cut
    instructions = came(made, 8, batch=1, attempt=3)
    assert of(RefuseRelay, instructions)[0].relay == 7
    assert of(Restore, instructions) == [Restore(cut)]
    assert made.inside == 1
    # what came of them is nobody's, and the processors are free for what was restored
    assert given(made.handle(ProcessorEnded("split", 1, "was killed"), 1.0)) == {}
    assert given(made.handle(ProcessorDone("log", 1, [Result([])]), 1.0)) == {
        "log": ["lines/0/5"]
    }
    made.handle(ProcessorDone("log", 1, [Result([])]), 2.0)
    assert made.inside == 0
    made.handle(RowsCame(7, [line(9)]), 2.0)  # of a relay that was refused
    made.handle(RowsCame(8, [line(5)]), 2.0)  # taken before the cut
    assert made.inside == 0


def test_a_record_may_be_for_one_operator_only_or_for_none():
    made = part()
    came(made, 7)
    only = [Row(LINES, n, line(n).record, only=name) for n, name in enumerate(["log", ""])]
    assert given(made.handle(RowsCame(7, only), 0.0)) == {"log": ["lines/0/0"]}
    assert made.inside == 1
    made.handle(RowsCame(7, [line(1)]), 0.0)  # it was taken, though by nobody
    assert made.inside == 1


def test_each_reader_has_a_key_of_its_own_and_order_within_it():
    made = part()
    came(made, 7)
    for name in ("split", "log"):
        (started,) = of(StartProcessor, made.handle(PlacementAsked(name, {HERE: 2}), 0.0))
        made.handle(ProcessorReady(name, started.processor), 0.0)
    rows = [
        Row(LINES, n, line(n).record, {"split": "same", "log": f"other {n}"}) for n in range(2)
    ]
    gives = [
        (i.operator, i.instruction.records[0].name, i.instruction.records[0].key)
        for i in made.handle(RowsCame(7, rows), 0.0)
        if isinstance(i, AtOperator)
    ]
    assert sorted(gives) == [
        ("log", "lines/0/0", "other 0"),
        ("log", "lines/0/1", "other 1"),
        ("split", "lines/0/0", "same"),
    ]


def test_what_was_inside_has_keys_by_the_processor_and_letters_say_so():
    graph = PartGraph(
        readers={"lines": ("split",), "words": ("count",)}, inner=frozenset(["words"])
    )
    on_error = OnError(then="dead_letter")
    desks = {name: OperatorDesk(on_error=on_error) for name in ("split", "count")}
    made = PartDesk(graph, desks, Ledger(Disk()))
    for name in desks:
        made.handle(PlacementAsked(name, {HERE: 1}), 0.0)
        made.handle(ProcessorReady(name, 1), 0.0)
    came(made, 7)
    made.handle(RowsCame(7, [line(0)]), 0.0)
    sent = OutputRecord("words", b"w", keys={"count": "w"})
    (give,) = of(Give, made.handle(ProcessorDone("split", 1, [Result([sent])]), 1.0))
    assert (give.records[0].key, give.at_once) == ("w", True)
    (handed,) = of(
        HandOver, made.handle(ProcessorDone("count", 1, [Result([], "ValueError")]), 2.0)
    )
    assert (handed.leaving.letter.operator, handed.leaving.letter.inner) == ("count", True)
    assert made.visits.per_root("lines-topic") == {"split": 1.0, "count": 1.0}


@pytest.mark.parametrize("then", ["stop", "dead_letter"])
def test_a_root_that_makes_more_records_than_may_be_follows_on_error(then):
    graph = PartGraph(
        readers={"lines": ("again",), "round": ("again",)}, inner=frozenset(["round"])
    )
    desk = OperatorDesk(on_error=OnError(then=then))
    made = PartDesk(graph, {"again": desk}, Ledger(Disk()), limits=Limits(of_root=5))
    made.handle(PlacementAsked("again", {HERE: 1}), 0.0)
    made.handle(ProcessorReady("again", 1), 0.0)
    came(made, 7)
    made.handle(RowsCame(7, [line(0), line(1)]), 0.0)
    twice = Result([OutputRecord("round", b"x")] * 2)
    done = [made.handle(ProcessorDone("again", 1, [twice]), 1.0) for _ in range(4)]
    # each line makes two of itself, and those again; the first line's second may not
    assert [len(of(StopPart, each) + of(HandOver, each)) for each in done] == [0, 0, 0, 1]
    if then == "stop":
        (stop,) = of(StopPart, done[-1])
        assert (
            stop.reason
            == "its root has produced more than 5 records; check that its loop terminates"
        )
        assert made.inside == 5
    else:
        assert desk.error_policy.dead == 1
        assert made.inside == 4


def test_a_record_of_which_nobody_knows_the_time_was_written_now():
    """By the clock of the host, which is compared with it; relays are on other machines."""
    graph = PartGraph(readers={"lines": ("split",)})
    desk = OperatorDesk()
    made = PartDesk(graph, {"split": desk}, Ledger(Disk()), clock=lambda: 50.0)
    came(made, 7)
    born = Record("lines/0/1", b"", "lines", birth_s=40.0)
    rows = [Row(LINES, 0, Record("lines/0/0", b"", "lines")), Row(LINES, 1, born)]
    arrived = [each.record for each in of(CountArrival, made.handle(RowsCame(7, rows), 0.0))]
    assert [(each.birth_s, each.written_s) for each in arrived] == [(50.0, 50.0), (40.0, 50.0)]


def test_what_a_projection_refused_is_a_dead_letter_that_leaves_at_once():
    made = part()
    came(made, 7)
    record = Record(
        "orders/0/0", b"torn", "orders", root="orders/0/0", birth_s=1.0, written_s=2.0
    )
    row = Row(LINES, 0, record, {}, None, ("clean", "it is torn"))
    done = made.handle(RowsCame(7, [row]), 0.0)
    (handed,) = of(HandOver, done)
    assert handed.leaving.root == Root(LINES, 0)
    assert handed.leaving.letter == DeadResult("clean", record, "it is torn", "", 1)
    assert (given(done), made.inside) == ({}, 0)
    # taken once, and given again to the next attempt at its batch
    assert of(HandOver, made.handle(RowsCame(7, [row]), 0.0)) == []
    (again,) = of(HandOver, came(made, 8, attempt=2))
    assert (again.relay, again.leaving) == (8, handed.leaving)
    assert given(made.handle(RowsCame(8, [line(1)]), 0.0)) == {
        "split": ["lines/0/1"],
        "log": ["lines/0/1"],
    }


def test_what_is_put_back_in_for_a_projection_behind_a_part_leaves_for_it_alone():
    desks = {name: OperatorDesk() for name in ("split", "count")}
    graph = PartGraph(
        readers={"lines": ("split",), "words": ("count",)},
        leaving=frozenset(["words"]),
        behind={"public": "words"},
    )
    made = PartDesk(graph, desks, Ledger(Disk()))
    came(made, 7)
    record = Record("lines/0/3.split.0", b"{}", "words", root="lines/0/3")
    (handed,) = of(
        HandOver, made.handle(RowsCame(7, [Row(LINES, 0, record, {}, "public")]), 0.0)
    )
    assert (handed.leaving.record.name, handed.leaving.record.stream) == (record.name, "public")
    assert made.inside == 0
    # of another stream it is for nobody
    other = Row(LINES, 1, Record("x", b"{}", "lines"), {}, "public")
    assert of(HandOver, made.handle(RowsCame(7, [other]), 0.0)) == []
    assert made.inside == 0


def test_what_could_not_be_started_is_started_again_when_time_has_passed():
    made = part()
    (start,) = of(StartProcessor, made.handle(PlacementAsked("log", {HERE: 2}), 0.0))
    made.handle(ProcessorEnded("log", start.processor, "no room"), 0.0)
    assert made.handle(TimePassed(), 0.05) == []
    (again,) = made.handle(TimePassed(), 1.0)
    assert again == AtOperator("log", StartProcessor(start.processor + 1))


@given_any(events=st.lists(st.sampled_from(["row", "split", "log", "count", "more", "fewer"])))
def test_no_relay_waits_for_credit_whatever_happened_last(events):
    """Credit is worked out only after some events, and has to be right after all of them."""
    made, offset, number = part(), 0, 1
    came(made, 7)
    busy = {name: [] for name in ("split", "log", "count")}
    for event in events:
        if event == "row":
            happened, offset = made.handle(RowsCame(7, [line(offset)]), 0.0), offset + 1
        elif event in {"more", "fewer"}:
            number = number + 1 if event == "more" else max(1, number - 1)
            happened = made.handle(PlacementAsked("split", {HERE: number}), 0.0)
        elif busy[event]:
            outputs = [OutputRecord("words", b"{}", {})] if event == "split" else []
            happened = made.handle(
                ProcessorDone(event, busy[event].pop(0), [Result(outputs)]), 0.0
            )
        else:
            continue
        for started in of(StartProcessor, happened):
            happened += made.handle(ProcessorReady("split", started.processor), 0.0)
        for each in happened:
            if isinstance(each, AtOperator) and isinstance(each.instruction, Give):
                busy[each.operator].append(each.instruction.processor)
        made.admission.relay_left(8)  # after that, it is worked out anew
        assert made.admission.grants(()) == []

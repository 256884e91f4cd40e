"""The desk of an operator: nobody is idle while records wait, and keys stay in order."""

from collections import Counter
from heapq import heappop, heappush
from random import Random

from sojourn.app.operator import OnError
from sojourn.decide.plan import ANYWHERE, HERE
from sojourn.spark.host.batch.cut import OpenRecord
from sojourn.spark.host.desk.broadcast_backfill import Latest
from sojourn.spark.host.desk.events import (
    NodeCame,
    NodeLeft,
    PlacementAsked,
    ProcessorDone,
    ProcessorEnded,
    ProcessorReady,
    TimePassed,
)
from sojourn.spark.host.desk.instructions import (
    Give,
    KillProcessor,
    NotKept,
    RecordCompleted,
    StartProcessor,
    StopPart,
)
from sojourn.spark.host.desk.operator_desk import OperatorDesk
from sojourn.spark.wire.processor import OutputRecord, Result
from sojourn.spark.wire.record import Record, Root

AT = "split"


def record(number, **fields):
    return Record(f"id-{number}", b"{}", **fields)


def number_of(record):
    return int(record.name.removeprefix("id-"))


def numbers(records):
    return [number_of(record) for record in records]


def of(kind, instructions):
    return [instruction for instruction in instructions if isinstance(instruction, kind)]


def first(give):
    """Return the number of the first record that a processor is given."""
    return number_of(give.records[0])


def done_numbers(instructions):
    return [number_of(done.record.record) for done in of(RecordCompleted, instructions)]


def stops(instructions):
    """Return the records that stop the application, and why."""
    return [(number_of(stop.record.record), stop.reason) for stop in of(StopPart, instructions)]


def desk(k=2, **fields):
    """Return a desk with *k* processors that are ready."""
    made = OperatorDesk(**fields)
    for started in of(StartProcessor, made.handle(PlacementAsked(AT, {HERE: k}), 0.0)):
        made.handle(ProcessorReady(AT, started.processor), 0.0)
    return made


def put(made, records, at_s=0.0):
    """Return what is to be done with records that come."""
    for each in records:
        made.put(opened(each))
    return made.turn(at_s)


def opened(told):
    """Return a record as it is in hand."""
    number = number_of(told)
    return OpenRecord(Root(("lines", 0), number), "split", told, 1 + number)


def out(text):
    return [OutputRecord("words", text.encode())]


def test_records_go_to_idle_processors_and_the_rest_waits():
    made = desk(k=2)
    given_out = of(Give, put(made, [record(i) for i in range(4)]))
    assert [(g.processor, first(g)) for g in given_out] == [(1, 0), (2, 1)]
    assert made.waiting == 2


def test_one_that_is_done_brings_the_next_and_makes_room_for_another():
    made = desk(k=1, ahead=1)
    put(made, [record(0), record(1)])
    done = made.handle(ProcessorDone(AT, 1, [Result(out("a"))]), 1.0)
    assert done_numbers(done) == [0]
    assert [first(g) for g in of(Give, done)] == [1]
    assert made.room == 1


def test_there_is_room_for_processors_and_a_few_more():
    made = desk(k=5, ahead=2)
    assert made.room == 7
    put(made, [record(i) for i in range(3)])
    assert made.room == 4
    made.handle(ProcessorDone(AT, 1, [Result([])]), 1.0)
    assert made.room == 5


# -- rescaling -------------------------------------------------------------------------------


def test_more_processors_count_once_they_are_ready():
    made = desk(k=1)
    started = of(StartProcessor, made.handle(PlacementAsked(AT, {HERE: 3}), 0.0))
    assert (made.processors.wanted, made.processors.running, len(started)) == (3, 1, 2)
    room = made.room
    made.handle(ProcessorReady(AT, started[0].processor), 0.0)
    assert made.processors.running == 2
    assert made.room == room + 1


def test_fewer_processors_idle_ones_go_first():
    made = desk(k=3)
    put(made, [record(0)])
    assert of(KillProcessor, made.handle(PlacementAsked(AT, {HERE: 1}), 0.0)) == [
        KillProcessor(3),
        KillProcessor(2),
    ]
    assert made.processors.running == 1


def test_one_that_works_goes_when_it_is_done():
    made = desk(k=2)
    put(made, [record(0), record(1)])
    assert of(KillProcessor, made.handle(PlacementAsked(AT, {HERE: 1}), 0.0)) == []
    done = made.handle(ProcessorDone(AT, 2, [Result(out("x"))]), 1.0)
    assert of(KillProcessor, done) == [KillProcessor(2)]
    assert len(of(RecordCompleted, done)) == 1


def test_one_that_was_let_go_before_it_was_ready_is_ended():
    made = desk(k=1)
    (started,) = of(StartProcessor, made.handle(PlacementAsked(AT, {HERE: 2}), 0.0))
    assert of(KillProcessor, made.handle(PlacementAsked(AT, {HERE: 1}), 0.0)) == [
        KillProcessor(started.processor)
    ]
    assert made.handle(ProcessorReady(AT, started.processor), 0.0) == [
        KillProcessor(started.processor)
    ]


# -- failures --------------------------------------------------------------------------------


def test_a_function_that_raises_stops_the_application_by_default():
    made = desk(k=1)
    put(made, [record(7)])
    done = made.handle(ProcessorDone(AT, 1, [Result([], "ValueError: no")]), 1.0)
    assert stops(done) == [(7, "ValueError: no")]


def test_or_makes_a_dead_letter_after_some_retries():
    made = desk(k=1, on_error=OnError(retries=2, then="dead_letter"))
    put(made, [record(7)])
    for _ in range(2):
        again = made.handle(ProcessorDone(AT, 1, [Result([], "ValueError: no")]), 1.0)
        assert [first(g) for g in of(Give, again)] == [7]
    (reply,) = of(
        RecordCompleted, made.handle(ProcessorDone(AT, 1, [Result([], "ValueError: no")]), 1.0)
    )
    assert reply.answer.dead == "ValueError: no"
    assert made.error_policy.retried == 2


def test_the_record_of_a_dead_processor_is_tried_elsewhere():
    made = desk(k=2)
    put(made, [record(0)])
    done = made.handle(ProcessorEnded(AT, 1, "killed by signal 9"), 1.0)
    assert len(of(StartProcessor, done)) == 1
    assert [(g.processor, first(g)) for g in of(Give, done)] == [(2, 0)]


def test_records_of_a_processor_that_is_gone_are_in_service_no_more():
    """Else there would be room for fewer and fewer records."""
    made = desk(k=1)
    put(made, [record(0)])
    room = made.room
    (started,) = of(StartProcessor, made.handle(ProcessorEnded(AT, 1, "killed"), 1.0))
    made.handle(ProcessorReady(AT, started.processor), 1.0)
    assert made.room == room
    made.handle(NodeLeft(HERE), 2.0)
    (started,) = of(StartProcessor, made.handle(NodeCame(HERE), 2.0))
    made.handle(ProcessorReady(AT, started.processor), 2.0)
    assert made.room == room


def test_what_dies_twice_follows_the_policy():
    made = desk(k=1, on_error=OnError(then="dead_letter"))
    put(made, [record(0)])
    (started,) = of(
        StartProcessor, made.handle(ProcessorEnded(AT, 1, "killed by signal 9"), 1.0)
    )
    made.handle(ProcessorReady(AT, started.processor), 2.0)
    done = made.handle(ProcessorEnded(AT, started.processor, "killed by signal 9"), 3.0)
    assert of(RecordCompleted, done)[0].answer.dead == "killed by signal 9"


def test_one_that_was_ended_for_taking_too_long_follows_the_policy_at_once():
    made = desk(k=1)
    put(made, [record(0)])
    done = made.handle(ProcessorEnded(AT, 1, "longer than 1 s", late=True), 2.0)
    assert stops(done) == [(0, "longer than 1 s")]


def test_the_first_that_dies_is_not_counted_as_a_try_though_one_was_ended_before():
    made = desk(k=1, on_error=OnError(retries=1))
    put(made, [record(0)])
    for number, late in ((1, True), (2, False)):
        ended = made.handle(ProcessorEnded(AT, number, "killed", late=late), 2.0)
        (started,) = of(StartProcessor, ended)
        (again,) = of(Give, made.handle(ProcessorReady(AT, started.processor), 3.0))
        assert first(again) == 0
    assert stops(made.handle(ProcessorEnded(AT, 3, "killed"), 4.0)) == [(0, "killed")]


def test_what_failed_once_is_as_any_other_when_it_is_done_or_comes_again():
    made = desk(k=1, on_error=OnError(retries=1))
    fails = ProcessorDone(AT, 1, [Result([], "ValueError")])
    put(made, [record(0)])
    made.handle(fails, 1.0)
    made.forget()  # and open again, after a start from a cut
    put(made, [record(0)])
    made.handle(ProcessorDone(AT, 1, [Result([])]), 2.0)  # of the one that is forgotten
    (again,) = of(Give, made.handle(fails, 3.0))
    assert first(again) == 0
    assert made.error_policy.alone == {1}
    made.handle(ProcessorDone(AT, 1, [Result([])]), 4.0)
    assert made.error_policy.alone == set()
    assert made.error_policy.failures(opened(record(0))).tries == 0


def test_a_processor_that_takes_too_long_is_seen():
    made = desk(k=2)
    put(made, [record(0)], at_s=10.0)
    assert made.processors.late(300.0, 300.0) == []
    assert made.processors.late(311.0, 300.0) == [1]


def test_the_time_in_which_a_processor_waits_for_something_outside_is_not_its_own():
    made = desk(k=1)
    put(made, [record(0)], at_s=10.0)
    for now_s in (200.0, 400.0):
        made.processors.waits(1, now_s)
    made.processors.waits(7, 400.0)  # of one that is gone
    assert made.processors.late(700.0, 300.0) == []
    assert made.processors.late(701.0, 300.0) == [1]


# -- records that take no time ---------------------------------------------------------------


def light(k, **fields):
    """Return a desk whose *k* processors have been seen to take 10 us for a record."""
    made = desk(k=k, ahead=100, **fields)
    put(made, [record(0)])
    made.handle(ProcessorDone(AT, 1, [Result([], took_s=1e-5)]), 0.0)
    return made


def test_light_records_are_given_several_at_once_and_shared():
    made = light(2)
    given_out = of(Give, put(made, [record(i) for i in range(1, 61)], at_s=1.0))
    assert [len(give.records) for give in given_out] == [30, 15]
    results = [Result([], took_s=1e-5)] * 30
    done = made.handle(ProcessorDone(AT, 1, results), 2.0)
    assert done_numbers(done) == list(range(1, 31))


def test_light_records_are_fetched_well_ahead():
    made = desk(k=1, ahead=2)
    put(made, [record(0)])
    made.handle(ProcessorDone(AT, 1, [Result([], took_s=1e-4)]), 0.0)
    assert made.room == 1 + 50


def test_an_idle_processor_that_is_gone_gets_nothing_while_it_is_asked_why():
    made = desk(k=2)
    made.processors.lost(1)
    given_out = of(Give, put(made, [record(0), record(1)]))
    assert [(g.processor, first(g)) for g in given_out] == [(2, 0)]
    assert made.processors.running == 1
    assert (
        len(of(StartProcessor, made.handle(ProcessorEnded(AT, 1, "killed by signal 9"), 1.0)))
        == 1
    )
    made.processors.lost(1)  # it may be told twice


def test_those_of_a_processor_that_died_are_tried_again_one_by_one():
    made = light(1)
    (first,) = of(Give, put(made, [record(i) for i in range(1, 5)], at_s=1.0))
    assert len(first.records) == 3
    (started,) = of(StartProcessor, made.handle(ProcessorEnded(AT, 1, "killed"), 2.0))
    (again,) = of(Give, made.handle(ProcessorReady(AT, started.processor), 3.0))
    assert len(again.records) == 1


# -- keys -----------------------------------------------------------------------------------


def test_a_key_is_in_service_once_and_holds_up_no_other():
    made = desk(k=3)
    came = [record(0, key="a"), record(1, key="a"), record(2, key="b"), record(3)]
    given_out = of(Give, put(made, came))
    assert [first(g) for g in given_out] == [0, 2, 3]
    (more,) = of(Give, made.handle(ProcessorDone(AT, 1, [Result([])]), 1.0))
    assert first(more) == 1


def test_one_that_is_tried_again_is_not_overtaken_by_its_key():
    made = desk(k=2, on_error=OnError(retries=1))
    put(made, [record(0, key="a"), record(1, key="a")])
    (again,) = of(Give, made.handle(ProcessorDone(AT, 1, [Result([], "ValueError")]), 1.0))
    assert first(again) == 0
    (again,) = of(Give, made.handle(ProcessorEnded(AT, again.processor, "killed"), 2.0))
    assert first(again) == 0


def test_those_behind_one_that_failed_in_the_same_group_wait_behind_it():
    made = light(1, on_error=OnError(retries=1))
    came = [record(number, key="a") for number in range(1, 10)]
    (group,) = of(Give, put(made, came, at_s=1.0))
    assert numbers(group.records) == list(range(1, 9))
    results = [Result([]), Result([], "ValueError"), *[Result([], skipped=True)] * 6]
    (again,) = of(Give, made.handle(ProcessorDone(AT, 1, results), 2.0))
    assert numbers(again.records) == [2]
    (rest,) = of(Give, made.handle(ProcessorDone(AT, 1, [Result([])]), 2.0))
    assert numbers(rest.records)[:2] == [3, 4]


def test_a_record_that_stops_the_application_keeps_those_of_its_key_behind_it():
    """It is tried again when the application goes on, and must not come after them."""
    made = desk(k=2)
    put(made, [record(0, key="a"), record(1, key="a")])
    done = made.handle(ProcessorDone(AT, 1, [Result([], "ValueError")]), 1.0)
    assert stops(done) == [(0, "ValueError")]
    assert not of(Give, done)
    assert of(Give, made.handle(TimePassed(), 2.0)) == []
    assert [first(give) for give in of(Give, put(made, [record(2, key="b")]))] == [2]


def test_records_that_wait_for_their_key_make_room_for_others():
    made = desk(k=4, ahead=2)
    sent = made.room
    put(made, [record(number, key="hot") for number in range(sent)])
    assert made.room == sent - 1
    while more := max(0, made.room):
        put(made, [record(number, key="hot") for number in range(sent, sent + more)])
        sent += more
    assert sent < 200  # and yet one key does not bring the whole stream in


def busy(keys, *, k=20, records=4000):
    """Return the part of their time that *k* processors work, if there is always more."""
    chance = Random(7)
    made = desk(k=k)
    sent, now_s, worked_s = 0, 0.0, 0.0
    ends = []

    def do(instructions):
        for give in of(Give, instructions):
            took_s = chance.expovariate(1 / 0.1)
            heappush(ends, (now_s + took_s, give.processor, took_s))

    while sent < records:
        while made.room > 0:
            sent += 1
            do(put(made, [record(sent, key=chance.choice(keys) if keys else None)], now_s))
        now_s, name, took_s = heappop(ends)
        worked_s += took_s
        do(made.handle(ProcessorDone(AT, name, [Result([], took_s=took_s)]), now_s))
    return worked_s / (k * now_s)


def test_reading_by_key_uses_processors_as_well_as_not():
    """Dealt out by the hash of the key, 20 processors were 55 % busy."""
    shuffled = busy([])
    assert shuffled > 0.97
    assert busy([f"key-{n}" for n in range(1000)]) > shuffled - 0.03
    assert busy([f"key-{n}" for n in range(100)]) > shuffled - 0.03


# -- records for everyone -------------------------------------------------------------------


def test_a_record_for_everyone_is_done_when_all_have_done_it():
    made = desk(k=3)
    given_out = of(Give, put(made, [record(0, everyone=True)]))
    assert [g.processor for g in given_out] == [1, 2, 3]
    assert of(RecordCompleted, made.handle(ProcessorDone(AT, 1, [Result(out("a"))]), 1.0)) == []
    assert of(RecordCompleted, made.handle(ProcessorDone(AT, 2, [Result(out("b"))]), 1.0)) == []
    (reply,) = of(RecordCompleted, made.handle(ProcessorDone(AT, 3, [Result(out("c"))]), 1.0))
    assert [o.payload for o in reply.answer.outputs] == [b"a", b"b", b"c"]


def test_one_that_dies_does_not_keep_everyone_waiting():
    made = desk(k=2, on_error=OnError(retries=9))
    put(made, [record(0)])
    put(made, [record(1, everyone=True)])
    made.handle(ProcessorDone(AT, 2, [Result([])]), 1.0)
    done = made.handle(ProcessorEnded(AT, 1, "killed by signal 9"), 1.0)
    assert 1 in done_numbers(done)


def test_one_that_fails_at_some_is_done_once_with_what_the_others_made_of_it():
    made = desk(k=3, on_error=OnError(retries=1, then="dead_letter"))
    put(made, [record(0, everyone=True)])
    done = made.handle(
        ProcessorDone(AT, 1, [Result([], "ValueError: first", traceback="at 1")]), 1.0
    )
    assert [g.processor for g in of(Give, done)] == [1]
    done += made.handle(
        ProcessorDone(AT, 1, [Result([], "ValueError: first", traceback="at 1")]), 1.0
    )
    done += made.handle(ProcessorDone(AT, 2, [Result(out("b"))]), 1.0)
    assert of(RecordCompleted, done) == []
    for _ in range(2):
        done += made.handle(ProcessorDone(AT, 3, [Result([], "ValueError: second")]), 1.0)
    (reply,) = of(RecordCompleted, done)
    told = reply.answer
    assert (told.dead, told.traceback, told.tries) == ("ValueError: first", "at 1", 2)
    assert list(told.outputs) == out("b")
    assert made.error_policy.dead == 1


def test_one_that_nobody_did_because_all_are_gone_waits_for_the_next():
    made = desk(k=1)
    put(made, [record(0, everyone=True)])
    done = made.handle(ProcessorEnded(AT, 1, "killed"), 1.0)
    assert of(RecordCompleted, done) == []
    (started,) = of(StartProcessor, done)
    (again,) = of(Give, made.handle(ProcessorReady(AT, started.processor), 2.0))
    assert first(again) == 0
    assert of(StopPart, made.handle(ProcessorEnded(AT, started.processor, "killed"), 3.0))


def test_a_processor_that_is_gone_has_nothing_for_everyone_to_do():
    made = desk(k=2)
    made.processors.lost(1)
    assert [give.processor for give in of(Give, put(made, [record(0, everyone=True)]))] == [2]
    assert done_numbers(made.handle(ProcessorDone(AT, 2, [Result([])]), 1.0)) == [0]


def test_one_for_everyone_waits_while_there_is_no_processor():
    made = OperatorDesk()
    assert put(made, [record(0, everyone=True)]) == []
    assert made.waiting == 1
    made.handle(PlacementAsked(AT, {HERE: 1}), 1.0)
    (give,) = of(Give, made.handle(ProcessorReady(AT, 1), 1.0))
    assert (first(give), made.waiting) == (0, 0)


def test_one_that_starts_while_one_without_a_key_is_under_way_has_nothing_to_do_with_it():
    made = desk(k=1)
    put(made, [record(0, everyone=True)])
    made.handle(PlacementAsked(AT, {HERE: 2}), 1.0)
    assert of(Give, made.handle(ProcessorReady(AT, 2), 1.0)) == []
    assert done_numbers(made.handle(ProcessorDone(AT, 1, [Result([])]), 2.0)) == [0]


def test_one_that_is_to_be_tried_again_does_without_a_processor_that_goes():
    made = desk(k=2, on_error=OnError(retries=1))
    put(made, [record(0, everyone=True)])
    made.handle(PlacementAsked(AT, {HERE: 1}), 0.0)
    made.handle(ProcessorDone(AT, 2, [Result([], "ValueError")]), 1.0)
    (reply,) = of(RecordCompleted, made.handle(ProcessorDone(AT, 1, [Result(out("a"))]), 2.0))
    assert (reply.answer.dead, list(reply.answer.outputs)) == ("", out("a"))


def test_one_that_hangs_somewhere_follows_the_policy():
    made = desk(k=2, on_error=OnError(then="dead_letter"))
    put(made, [record(0, everyone=True)])
    made.handle(ProcessorDone(AT, 1, [Result(out("a"))]), 1.0)
    (reply,) = of(
        RecordCompleted, made.handle(ProcessorEnded(AT, 2, "longer than 1 s", late=True), 2.0)
    )
    assert reply.answer.dead == "longer than 1 s"
    assert list(reply.answer.outputs) == out("a")


# -- the latest of those, for processors that start later -----------------------------------


def rule(number, key, **fields):
    return record(number, key=key, everyone=True, **fields)


def told_to_a_new_one(made, name=None):
    """Return the records that a processor that starts now gets before its first."""
    if name is None:
        (name,) = (
            start.processor
            for start in of(
                StartProcessor,
                made.handle(PlacementAsked(AT, {HERE: made.processors.wanted + 1}), 9.0),
            )
        )
    told, instructions = [], made.handle(ProcessorReady(AT, name), 9.0)
    while lessons := [give for give in of(Give, instructions) if give.processor == name]:
        (give,) = lessons
        if give.new:
            break
        told += numbers(give.records)
        instructions = made.handle(
            ProcessorDone(AT, name, [Result(out("x"))] * len(give.records)), 9.0
        )
        assert of(RecordCompleted, instructions) == []  # what it makes of them is nobody's
    return told


def test_one_that_starts_later_gets_the_latest_of_each_key_before_its_first_record():
    made = desk(k=1, ahead=9)
    for number, key in enumerate(["a", "b", "a"]):
        put(made, [rule(number, key)])
        made.handle(ProcessorDone(AT, 1, [Result([])]), 1.0)
    put(made, [record(3, everyone=True)], at_s=2.0)  # without a key nothing is kept
    made.handle(ProcessorDone(AT, 1, [Result([])]), 2.0)
    assert told_to_a_new_one(made) == [1, 2]
    assert made.processors.running == 2


def test_one_that_starts_while_a_rule_is_under_way_gets_it_too():
    made = desk(k=1)
    put(made, [rule(0, "a")])
    assert told_to_a_new_one(made) == []
    assert of(RecordCompleted, made.handle(ProcessorDone(AT, 1, [Result([])]), 1.0)) == []
    assert of(RecordCompleted, made.handle(ProcessorDone(AT, 2, [Result([])]), 1.0))


def test_it_counts_as_running_once_it_knows_all():
    made = desk(k=1)
    put(made, [rule(0, "a")])
    made.handle(ProcessorDone(AT, 1, [Result([])]), 1.0)
    (start,) = of(StartProcessor, made.handle(PlacementAsked(AT, {HERE: 2}), 2.0))
    (give,) = of(Give, made.handle(ProcessorReady(AT, start.processor), 3.0))
    assert (give.new, made.processors.running) == (False, 1)
    assert made.processors.late(9.0, 5.0) == [start.processor]
    made.handle(ProcessorDone(AT, start.processor, [Result([], "ValueError")]), 4.0)
    assert made.processors.running == 2


def test_what_it_has_to_know_is_told_in_portions():
    made = desk(k=1)
    for number in range(150):
        put(made, [rule(number, f"key-{number}")])
        made.handle(ProcessorDone(AT, 1, [Result([])]), 1.0)
    (start,) = of(StartProcessor, made.handle(PlacementAsked(AT, {HERE: 2}), 2.0))
    (give,) = of(Give, made.handle(ProcessorReady(AT, start.processor), 3.0))
    assert len(give.records) == 100
    some = made.handle(ProcessorDone(AT, start.processor, [Result([])] * 99), 8.0)
    assert of(Give, some) == []
    assert made.processors.late(9.0, 5.0) == []  # each has its own time
    (give,) = of(Give, made.handle(ProcessorDone(AT, start.processor, [Result([])]), 9.0))
    assert numbers(give.records) == list(range(100, 150))


def test_what_failed_everywhere_is_not_kept():
    made = desk(k=1, on_error=OnError(then="dead_letter"))
    put(made, [rule(0, "a")])
    made.handle(ProcessorDone(AT, 1, [Result([])]), 1.0)
    put(made, [rule(1, "a")], at_s=2.0)
    made.handle(ProcessorDone(AT, 1, [Result([], "ValueError")]), 3.0)
    assert told_to_a_new_one(made) == [0]


def test_what_there_is_no_room_for_is_said_and_reaches_those_that_run():
    made = OperatorDesk()
    made.forget([rule(number, f"key-{number}") for number in range(10_000)])
    made.handle(PlacementAsked(AT, {HERE: 1}), 0.0)
    assert told_to_a_new_one(made, 1) == list(range(10_000))
    put(made, [rule(10_000, "one more")], at_s=2.0)
    done = made.handle(ProcessorDone(AT, 1, [Result([])]), 3.0)
    (said,) = of(NotKept, done)
    assert number_of(said.record) == 10_000
    assert said.reason == "the limit of 10000 keys is reached"
    assert done_numbers(done) == [10_000]
    assert numbers(made.latest.records) == list(range(10_000))


def test_bytes_are_bounded_too():
    latest = Latest(most_bytes=10)
    assert latest.keep(1, Record("id-1", b"12345678", key="a")) == ""
    assert latest.keep(2, Record("id-2", b"123", key="b")).startswith("the limit of")
    assert latest.keep(3, Record("id-3", b"1", key="a")) == ""
    assert latest.keep(4, Record("id-4", b"123", key="b")) == ""
    assert numbers(latest.records) == [3, 4]


def test_a_rule_that_kills_those_that_learn_it_is_found_and_dropped():
    made = desk(k=1)
    for number in range(3):
        put(made, [rule(number, f"key-{number}")])
        made.handle(ProcessorDone(AT, 1, [Result([])]), 1.0)
    (start,) = of(StartProcessor, made.handle(PlacementAsked(AT, {HERE: 2}), 2.0))
    (give,) = of(Give, made.handle(ProcessorReady(AT, start.processor), 2.0))
    assert len(give.records) == 3
    (start,) = of(
        StartProcessor, made.handle(ProcessorEnded(AT, start.processor, "killed"), 3.0)
    )
    (give,) = of(Give, made.handle(ProcessorReady(AT, start.processor), 4.0))
    assert numbers(give.records) == [0]
    done = made.handle(ProcessorEnded(AT, start.processor, "killed"), 5.0)
    assert [(number_of(said.record), said.reason) for said in of(NotKept, done)] == [
        (0, "killed")
    ]
    (start,) = of(StartProcessor, done)
    assert told_to_a_new_one(made, start.processor) == [1, 2]


# -- what is forgotten ------------------------------------------------------------------------


def test_what_is_forgotten_is_nobodys_and_processors_are_free_when_they_are_done_with_it():
    made = desk(k=2)
    put(made, [record(0, key="a"), record(1, key="a"), record(2), record(3)])
    made.forget()
    assert made.waiting == 0
    (give,) = of(
        Give,
        put(made, [record(0, key="a")]) + made.handle(ProcessorDone(AT, 1, [Result([])]), 1.0),
    )
    assert (give.processor, first(give)) == (1, 0)
    assert of(RecordCompleted, made.handle(ProcessorEnded(AT, 2, "killed"), 2.0)) == []
    done = made.handle(ProcessorDone(AT, 1, [Result(out("a"))]), 3.0)
    assert done_numbers(done) == [0]
    assert (made.error_policy.retried, made.waiting) == (0, 0)


def test_one_for_everyone_that_is_forgotten_holds_nobody_up():
    made = desk(k=2)
    put(made, [record(0, everyone=True), record(1, everyone=True)])
    made.handle(ProcessorDone(AT, 1, [Result([])]), 1.0)
    made.forget()
    put(made, [record(0, everyone=True)])
    given = [
        *made.handle(ProcessorDone(AT, 1, [Result([])]), 2.0),
        *made.handle(ProcessorDone(AT, 2, [Result([])]), 2.0),
    ]
    assert sorted((give.processor, first(give)) for give in of(Give, given)) == [(1, 0), (2, 0)]
    assert (
        of(RecordCompleted, given + made.handle(ProcessorDone(AT, 1, [Result([])]), 3.0)) == []
    )
    assert done_numbers(made.handle(ProcessorDone(AT, 2, [Result([])]), 3.0)) == [0]


def test_processors_that_run_already_are_told_what_they_have_to_know():
    """A host that is restarted has processors before it knows its last cut."""
    made = desk(k=2)
    put(made, [record(0)])
    made.forget([rule(1, "a"), rule(2, "b")])
    assert made.processors.running == 0
    (give,) = of(Give, put(made, [record(3)], at_s=1.0))
    assert (give.processor, give.new, numbers(give.records)) == (2, False, [1, 2])
    # the other was at a record
    (give,) = of(Give, made.handle(ProcessorDone(AT, 1, [Result([])]), 2.0))
    assert (give.processor, give.new, numbers(give.records)) == (1, False, [1, 2])
    (give,) = of(Give, made.handle(ProcessorDone(AT, 2, [Result([])] * 2), 3.0))
    assert (give.processor, give.new, first(give)) == (2, True, 3)
    made.handle(ProcessorDone(AT, 1, [Result([])] * 2), 3.0)
    assert made.processors.running == 2
    assert numbers(made.latest.records) == [1, 2]


def test_one_that_is_being_told_goes_on_with_what_it_has_to_know_now():
    made = OperatorDesk()
    made.forget([rule(0, "a")])
    made.handle(PlacementAsked(AT, {HERE: 1}), 0.0)
    made.handle(ProcessorReady(AT, 1), 0.0)
    made.forget([rule(1, "a"), rule(2, "b")])
    assert made.turn(1.0) == []
    (give,) = made.handle(ProcessorDone(AT, 1, [Result([])]), 1.0)
    assert (give.new, numbers(give.records)) == (False, [1, 2])
    made.handle(ProcessorDone(AT, 1, [Result([])] * 2), 2.0)
    assert made.processors.running == 1


def placed_on(told):
    """Return how many processors are to be started on each node."""
    return Counter(each.node for each in told if isinstance(each, StartProcessor))


def test_processors_of_a_node_that_is_lost_run_on_others_until_the_next_placement():
    """Nobody has to decide that: whoever places processors may be busy, or paused."""
    desk = OperatorDesk()
    for node in ("a", "b", "c"):
        desk.handle(NodeCame(node), 0.0)
    first = desk.handle(PlacementAsked(AT, {"a": 3, "b": 1}), 1.0)
    assert placed_on(first) == {"a": 3, "b": 1}
    assert placed_on(desk.handle(NodeLeft("a"), 2.0)) == {"b": 1, "c": 2}
    assert placed_on(desk.handle(NodeCame("a"), 3.0)) == {"a": 3}  # it is back
    assert placed_on(desk.handle(NodeLeft("a"), 4.0)) == {}
    assert placed_on(desk.handle(PlacementAsked(AT, {"b": 2, "c": 5}), 5.0)) == {"c": 3}


def test_processors_that_may_run_anywhere_are_on_all_nodes_there_are():
    desk = OperatorDesk()
    assert not placed_on(desk.handle(PlacementAsked(AT, {ANYWHERE: 3}), 0.0))
    assert placed_on(desk.handle(NodeCame("a"), 1.0)) == {"a": 3}
    assert placed_on(desk.handle(NodeCame("b"), 2.0)) == {"b": 1}


def test_a_node_that_has_not_come_yet_is_waited_for():
    """A host that starts again hears of nodes one after the other."""
    desk = OperatorDesk()
    desk.handle(NodeCame("a"), 0.0)
    assert placed_on(desk.handle(PlacementAsked(AT, {"a": 1, "b": 1}), 1.0)) == {"a": 1}
    assert placed_on(desk.handle(NodeCame("b"), 2.0)) == {"b": 1}


def test_a_record_that_nodes_die_of_again_and_again_is_put_aside():
    desk = OperatorDesk(on_error=OnError(retries=0, then="dead_letter"))
    desk.put(opened(record(1)))
    done = []
    for number in range(3):
        node = f"node-{number}"
        desk.handle(PlacementAsked(AT, {node: 1}), 0.0)
        (start,) = desk.handle(NodeCame(node), 0.0)
        assert (start.processor, start.node) == (number + 1, node)
        (given,) = desk.handle(ProcessorReady(AT, start.processor), 0.0)
        assert given.processor == start.processor
        done = desk.handle(NodeLeft(node), 0.0)
    (completed,) = done
    assert completed.answer.dead == "3 nodes in a row were lost while they worked on it"


def test_a_record_waits_for_a_near_processor_only_if_none_is_idle():
    desk = OperatorDesk()
    desk.handle(NodeCame("far"), 0.0)
    started = desk.handle(PlacementAsked(AT, {"far": 1, HERE: 1}), 0.0)
    for start in started:
        desk.handle(ProcessorReady(AT, start.processor), 0.0)
    (near,) = [start.processor for start in started if start.node == HERE]
    desk.put(opened(record(1)))
    desk.put(opened(record(2)))
    first, second = desk.turn(0.0)
    assert first.processor == near
    assert second.processor != near


def far_desk(k=2, *, service_s=0.001, way_s=0.004):
    """Return a desk whose *k* processors are on a node, as far away as was seen."""
    made = OperatorDesk()
    made.handle(NodeCame("far"), 0.0)
    for started in made.handle(PlacementAsked(AT, {"far": k}), 0.0):
        made.handle(ProcessorReady(AT, started.processor), 0.0)
    (given_out,) = of(Give, put(made, [record(0)]))
    took = Result([], took_s=service_s)
    made.handle(ProcessorDone(AT, given_out.processor, [took]), service_s + way_s)
    return made


def test_who_is_far_away_gets_short_records_before_it_is_done():
    """Else it would wait for the way to the host and back after each."""
    made = far_desk(k=2)
    room = made.room
    given_out = of(Give, put(made, [record(i) for i in range(1, room + 1)], at_s=1.0))
    each = {1: [], 2: []}
    for give in given_out:
        assert give.ahead == bool(each[give.processor])
        each[give.processor] += give.records
    assert [len(records) for records in each.values()] == [5, 5]
    assert made.waiting >= 2  # for who is idle first
    done = made.handle(ProcessorDone(AT, 1, [Result([], took_s=0.001)]), 1.005)
    assert done_numbers(done) == [number_of(each[1][0])]
    assert [(give.processor, len(give.records)) for give in of(Give, done)] == [(1, 1)]


def test_who_is_far_away_gets_one_record_at_a_time_where_services_are_long_or_few_wait():
    long = far_desk(k=1, service_s=0.1)
    assert [len(g.records) for g in of(Give, put(long, [record(i) for i in range(1, 9)]))] == [
        1
    ]
    short = far_desk(k=2)
    assert len(of(Give, put(short, [record(i) for i in range(1, 5)]))) == 2
    assert short.waiting == 2


def test_a_record_that_has_to_be_alone_is_not_given_ahead():
    made = far_desk(k=2)
    put(made, [record(i) for i in range(1, made.room + 1)], at_s=1.0)
    # what it had is tried again, each alone
    done = made.handle(ProcessorEnded(AT, 1, "killed"), 1.1)
    for name in (2, 2, 2, 2, 2):
        done = made.handle(ProcessorDone(AT, name, [Result([], took_s=0.001)]), 1.2)
    (give,) = of(Give, done)
    assert (give.ahead, len(give.records)) == (False, 1)
    assert not of(Give, made.turn(1.3))


def test_nothing_is_given_ahead_behind_a_record_that_has_to_be_alone():
    made = far_desk(k=1)
    put(made, [record(1)], at_s=1.0)
    (started,) = of(StartProcessor, made.handle(ProcessorEnded(AT, 1, "killed"), 1.1))
    put(made, [record(i) for i in range(2, 12)], at_s=1.1)
    (give,) = of(Give, made.handle(ProcessorReady(AT, started.processor), 1.2))
    assert numbers(give.records) == [1]
    done = made.handle(ProcessorDone(AT, started.processor, [Result([], took_s=0.001)]), 1.3)
    assert [give.ahead for give in of(Give, done)] == [False, True]

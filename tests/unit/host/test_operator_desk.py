"""The host's decisions: nothing lost, nothing done twice, nobody idle while records wait."""

from collections import Counter
from heapq import heappop, heappush
from random import Random

from sojourn.app.operator import OnError
from sojourn.host.desk import Desk
from sojourn.host.instructions import (
    Fail,
    Finish,
    Give,
    Grant,
    KillProcessor,
    NotKept,
    Reply,
    StartProcessor,
)
from sojourn.host.latest import Latest
from sojourn.host.messages import Hello, OutputRecord, Record, Result
from sojourn.host.operator_desk import OperatorDesk


def record(number, **fields):
    return Record(number, f"id-{number}", b"{}", **fields)


def of(kind, instructions):
    return [instruction for instruction in instructions if isinstance(instruction, kind)]


def desk(k=2, remembered_bytes=64 << 20, **fields):
    """Return a desk with *k* processors that are ready, and one feed."""
    made = Desk(OperatorDesk(**fields), remembered_bytes=remembered_bytes)
    for started in of(StartProcessor, made.scaled(k, 0.0)):
        made.processor_ready(started.processor, 0.0)
    granted = of(Grant, made.feed_came(1, Hello("q", 0, 0)))
    return made, sum(grant.number for grant in granted)


def out(text):
    return [OutputRecord("words", text.encode())]


def test_a_feed_gets_credit_for_processors_and_a_few_more():
    _, credit = desk(k=5, ahead=2)
    assert credit == 7


def test_feeds_share_the_credit():
    made = Desk(OperatorDesk(ahead=3))
    for started in of(StartProcessor, made.scaled(3, 0.0)):
        made.processor_ready(started.processor, 0.0)
    first = of(Grant, made.feed_came(1, Hello("q", 0, 0)))
    assert first == [Grant(1, 6)]
    made.records_came(1, [record(i) for i in range(6)], 0.0)
    made.feed_came(2, Hello("q", 1, 0))
    given_to = Counter()
    for number in range(2):
        for name in (1, 2, 3):
            for grant in of(Grant, made.processor_done(name, [Result([], "")], 1.0 + number)):
                given_to[grant.feed] += grant.number
    assert abs(given_to[1] - given_to[2]) <= 1


def test_a_feed_that_sends_nothing_keeps_no_other_waiting():
    """In a loop what the first waits for comes of what the second has."""
    made, credit = desk(k=1, ahead=1)
    assert credit == 2
    instructions = made.feed_came(2, Hello("q", 1, 0))
    for number in range(5):
        assert [grant.feed for grant in of(Grant, instructions)] == [2]
        instructions = made.records_came(2, [record(number)], 0.0)
        instructions += made.processor_done(1, [Result([], "")], 1.0)


def test_records_go_to_idle_processors_and_the_rest_waits():
    made, _ = desk(k=2)
    given_out = of(Give, made.records_came(1, [record(i) for i in range(4)], 0.0))
    assert [(g.processor, g.records[0].number) for g in given_out] == [(1, 0), (2, 1)]
    assert made.operator.waiting == 2


def test_an_answer_brings_the_next_record_and_credit():
    made, _ = desk(k=1, ahead=1)
    made.records_came(1, [record(0), record(1)], 0.0)
    done = made.processor_done(1, [Result(out("a"), "")], 1.0)
    assert [r.answer.number for r in of(Reply, done)] == [0]
    assert [g.records[0].number for g in of(Give, done)] == [1]
    assert of(Grant, done) == [Grant(1, 1)]


def test_a_feed_is_finished_when_all_its_records_are_answered():
    made, _ = desk(k=2)
    made.records_came(1, [record(0), record(1)], 0.0)
    assert of(Finish, made.feed_ended(1)) == []
    assert of(Finish, made.processor_done(1, [Result([], "")], 1.0)) == []
    assert of(Finish, made.processor_done(2, [Result([], "")], 2.0)) == [Finish(1)]


def test_a_feed_without_records_is_finished_at_once():
    made, _ = desk()
    assert of(Finish, made.feed_ended(1)) == [Finish(1)]


# -- rescaling -------------------------------------------------------------------------------


def test_more_processors_count_once_they_are_ready():
    made, _ = desk(k=1)
    started = of(StartProcessor, made.scaled(3, 0.0))
    assert (made.operator.wanted, made.operator.running, len(started)) == (3, 1, 2)
    granted = made.processor_ready(started[0].processor, 0.0)
    assert made.operator.running == 2
    assert of(Grant, granted) == [Grant(1, 1)]


def test_fewer_processors_idle_ones_go_first():
    made, _ = desk(k=3)
    made.records_came(1, [record(0)], 0.0)
    assert of(KillProcessor, made.scaled(1, 0.0)) == [KillProcessor(3), KillProcessor(2)]
    assert made.operator.running == 1


def test_one_that_works_goes_when_it_is_done():
    made, _ = desk(k=2)
    made.records_came(1, [record(0), record(1)], 0.0)
    assert of(KillProcessor, made.scaled(1, 0.0)) == []
    done = made.processor_done(2, [Result(out("x"), "")], 1.0)
    assert of(KillProcessor, done) == [KillProcessor(2)]
    assert len(of(Reply, done)) == 1


def test_one_that_was_let_go_before_it_was_ready_is_ended():
    made, _ = desk(k=1)
    (started,) = of(StartProcessor, made.scaled(2, 0.0))
    assert of(KillProcessor, made.scaled(1, 0.0)) == [KillProcessor(started.processor)]
    assert made.processor_ready(started.processor, 0.0) == [KillProcessor(started.processor)]


# -- failures --------------------------------------------------------------------------------


def test_a_function_that_raises_stops_the_application_by_default():
    made, _ = desk(k=1)
    made.records_came(1, [record(7)], 0.0)
    done = made.processor_done(1, [Result([], "ValueError: no")], 1.0)
    assert of(Fail, done) == [Fail(1, record(7), "ValueError: no")]


def test_or_makes_a_dead_letter_after_some_retries():
    made, _ = desk(k=1, on_error=OnError(retries=2, then="dead_letter"))
    made.records_came(1, [record(7)], 0.0)
    for _ in range(2):
        again = made.processor_done(1, [Result([], "ValueError: no")], 1.0)
        assert [g.records[0].number for g in of(Give, again)] == [7]
    (reply,) = of(Reply, made.processor_done(1, [Result([], "ValueError: no")], 1.0))
    assert reply.answer.dead == "ValueError: no"
    assert made.operator.retried == 2


def test_the_record_of_a_dead_processor_is_tried_elsewhere():
    made, _ = desk(k=2)
    made.records_came(1, [record(0)], 0.0)
    done = made.processor_died(1, "killed by signal 9", 1.0)
    assert len(of(StartProcessor, done)) == 1
    assert [(g.processor, g.records[0].number) for g in of(Give, done)] == [(2, 0)]


def test_what_dies_twice_follows_the_policy():
    made, _ = desk(k=1, on_error=OnError(then="dead_letter"))
    made.records_came(1, [record(0)], 0.0)
    (started,) = of(StartProcessor, made.processor_died(1, "killed by signal 9", 1.0))
    made.processor_ready(started.processor, 2.0)
    done = made.processor_died(started.processor, "killed by signal 9", 3.0)
    assert of(Reply, done)[0].answer.dead == "killed by signal 9"


def test_one_that_was_ended_for_taking_too_long_follows_the_policy_at_once():
    made, _ = desk(k=1)
    made.records_came(1, [record(0)], 0.0)
    done = made.processor_died(1, "longer than 1 s", 2.0, late=True)
    assert of(Fail, done) == [Fail(1, record(0), "longer than 1 s")]


def test_a_processor_that_takes_too_long_is_seen():
    made, _ = desk(k=2)
    made.records_came(1, [record(0)], 10.0)
    assert made.operator.late(300.0, 300.0) == []
    assert made.operator.late(311.0, 300.0) == [1]


def test_what_is_in_hand_when_a_feed_leaves_goes_on_and_meets_its_record_again():
    made, _ = desk(k=1)
    made.records_came(1, [record(0), record(1)], 0.0)
    assert made.feed_leaves(1) == [Finish(1)]
    made.feed_came(2, Hello("q", 0, 1, brings=1))
    again = [Record(7, "id-0", b"{}"), Record(8, "id-1", b"{}")]
    assert all(made.knows(record) for record in again)
    assert of(Give, made.records_came(2, again, 1.0)) == []
    (reply,) = of(Reply, made.processor_done(1, [Result(out("a"), "")], 2.0))
    assert (reply.feed, reply.answer.number) == (2, 7)
    assert made.replayed == 0


def test_what_is_brought_again_takes_no_credit():
    made, _ = desk(k=2, ahead=1)
    made.records_came(1, [record(0)], 0.0)
    made.feed_leaves(1)
    (granted,) = of(Grant, made.feed_came(2, Hello("q", 0, 1, brings=1)))
    assert granted.number == 2 + 1 - 1  # one is in hand
    assert of(Grant, made.records_came(2, [record(0)], 1.0)) == []
    assert of(Grant, made.processor_done(1, [Result([], "")], 2.0)) == [Grant(2, 1)]


def test_what_is_done_before_its_record_comes_again_is_remembered():
    made, _ = desk(k=1)
    made.records_came(1, [record(0)], 0.0)
    made.feed_leaves(1)
    (told,) = of(Reply, made.processor_done(1, [Result(out("a"), "")], 1.0))
    assert told.record.identity == "id-0"  # it is counted now, and not when it comes again
    made.feed_came(2, Hello("q", 0, 1, brings=1))
    (reply,) = made.records_came(2, [Record(7, "id-0", b"{}")], 2.0)[:1]
    assert (reply.feed, reply.answer.number, reply.record) == (2, 7, None)
    assert (list(reply.answer.outputs), made.replayed) == (out("a"), 0)
    made.feed_came(3, Hello("q", 0, 2))  # the batch that took it over is committed
    assert not made.knows(record(0))


def test_of_a_feed_that_failed_nothing_in_service_is_done_twice():
    made, _ = desk(k=1)
    made.records_came(1, [record(0)], 0.0)
    made.feed_left(1)
    made.feed_left(1)  # its connection may break after it has left
    made.feed_came(2, Hello("q", 0, 0))
    assert of(Give, made.records_came(2, [record(0)], 1.0)) == []
    assert of(Reply, made.processor_done(1, [Result([], "")], 2.0))[0].feed == 2
    assert made.feed_leaves(1) == []


def test_what_stops_the_application_does_so_when_it_comes_again():
    made, _ = desk(k=1)
    made.records_came(1, [record(0)], 0.0)
    made.feed_leaves(1)
    assert of(Fail, made.processor_done(1, [Result([], "ValueError")], 1.0)) == []
    made.feed_came(2, Hello("q", 0, 1, brings=1))
    assert of(Give, made.records_came(2, [record(0)], 2.0))
    assert of(Fail, made.processor_done(1, [Result([], "ValueError")], 3.0))[0].feed == 2


def test_the_same_record_twice_in_a_stream_is_answered_twice():
    """After a failure further up, one may come once more with the same identity."""
    made, _ = desk(k=2)
    made.records_came(1, [Record(0, "id", b"{}"), Record(1, "id", b"{}")], 0.0)
    made.feed_leaves(1)
    made.processor_done(1, [Result([], "")], 1.0)
    made.processor_done(2, [Result([], "")], 1.0)
    made.feed_came(2, Hello("q", 0, 1, brings=1))
    done = made.records_came(2, [Record(0, "id", b"{}"), Record(1, "id", b"{}")], 2.0)
    assert [reply.answer.number for reply in of(Reply, done)] == [0, 1]


def test_what_was_answered_in_this_batch_is_not_done_twice():
    """A feed that failed brings its batch again; the work on it is not lost."""
    made, _ = desk(k=1)
    made.records_came(1, [record(0)], 0.0)
    made.processor_done(1, [Result(out("a"), "")], 1.0)
    made.feed_left(1)
    made.feed_came(2, Hello("q", 0, 0))
    done = made.records_came(2, [Record(5, "id-0", b"{}")], 3.0)
    (reply,) = of(Reply, done)
    assert (reply.feed, reply.answer.number) == (2, 5)
    assert list(reply.answer.outputs) == out("a")
    assert (of(Give, done), made.replayed) == ([], 1)


def test_what_is_committed_is_forgotten():
    made, _ = desk(k=1)
    made.records_came(1, [record(0)], 0.0)
    made.processor_done(1, [Result(out("a"), "")], 1.0)
    made.feed_ended(1)
    made.feed_came(2, Hello("q", 0, 1))
    assert of(Give, made.records_came(2, [record(0)], 3.0))


def test_memory_is_bounded():
    made, _ = desk(k=1, remembered_bytes=1600)
    for number in range(5):
        made.records_came(1, [record(number)], 0.0)
        made.processor_done(1, [Result([], "")], 1.0)
    made.feed_left(1)
    made.feed_came(2, Hello("q", 0, 0))
    done = made.records_came(2, [record(0), record(4)], 3.0)
    assert [g.records[0].number for g in of(Give, done)] == [0]


# -- records that take no time ---------------------------------------------------------------


def light(k, **fields):
    """Return a desk whose *k* processors have been seen to take 10 us for a record."""
    made, _ = desk(k=k, ahead=100, **fields)
    made.records_came(1, [record(0)], 0.0)
    made.processor_done(1, [Result([], took_s=1e-5)], 0.0)
    return made


def test_light_records_are_given_several_at_once_and_shared():
    made = light(2)
    given_out = of(Give, made.records_came(1, [record(i) for i in range(1, 61)], 1.0))
    assert [len(give.records) for give in given_out] == [30, 15]
    results = [Result([], took_s=1e-5)] * 30
    done = made.processor_done(1, results, 2.0)
    assert [reply.answer.number for reply in of(Reply, done)] == list(range(1, 31))


def test_light_records_are_fetched_well_ahead():
    made = Desk(OperatorDesk(ahead=2))
    for started in of(StartProcessor, made.scaled(1, 0.0)):
        made.processor_ready(started.processor, 0.0)
    made.feed_came(1, Hello("q", 0, 0))
    made.records_came(1, [record(0)], 0.0)
    granted = of(Grant, made.processor_done(1, [Result([], took_s=1e-4)], 0.0))
    assert granted == [Grant(1, 1 + 50 - 2)]


def test_an_idle_processor_that_is_gone_gets_nothing_while_it_is_asked_why():
    made, _ = desk(k=2)
    made.operator.processor_lost(1)
    given_out = of(Give, made.records_came(1, [record(0), record(1)], 0.0))
    assert [(g.processor, g.records[0].number) for g in given_out] == [(2, 0)]
    assert made.operator.running == 1
    assert len(of(StartProcessor, made.processor_died(1, "killed by signal 9", 1.0))) == 1
    made.operator.processor_lost(1)  # it may be told twice


def test_those_of_a_processor_that_died_are_tried_again_one_by_one():
    made = light(1)
    (first,) = of(Give, made.records_came(1, [record(i) for i in range(1, 5)], 1.0))
    assert len(first.records) == 3
    (started,) = of(StartProcessor, made.processor_died(1, "killed", 2.0))
    (again,) = of(Give, made.processor_ready(started.processor, 3.0))
    assert len(again.records) == 1


# -- draining --------------------------------------------------------------------------------


def test_batches_that_begin_after_a_drain_get_nothing():
    made, _ = desk(k=1)
    made.records_came(1, [record(0)], 0.0)
    made.drain()
    made.feed_ended(1)
    assert of(Finish, made.processor_done(1, [Result(out("a"))], 1.0)) == [Finish(1)]
    assert not made.drained
    assert made.feed_came(2, Hello("q", 0, 1)) == []
    assert made.drained


def test_a_batch_that_fails_amid_a_drain_is_done_again():
    made, _ = desk(k=1)
    made.records_came(1, [record(0)], 0.0)
    made.drain()
    made.feed_left(1)
    assert of(Grant, made.feed_came(2, Hello("q", 0, 0)))
    assert not made.drained
    made.records_came(2, [record(0)], 1.0)
    made.feed_ended(2)
    assert of(Finish, made.processor_done(1, [Result(out("a"))], 2.0)) == [Finish(2)]
    assert made.feed_came(3, Hello("q", 0, 1)) == []
    assert made.drained


def test_a_host_started_again_amid_a_drain_finishes_the_batch():
    made = Desk(OperatorDesk())
    made.drain()
    made.scaled(1, 0.0)
    made.processor_ready(1, 0.0)
    assert not made.drained  # its feeds have not come yet
    assert of(Grant, made.feed_came(1, Hello("q", 0, 5, brings=0)))
    made.records_came(1, [record(0)], 0.0)
    made.feed_ended(1)
    assert of(Finish, made.processor_done(1, [Result(out("a"))], 1.0)) == [Finish(1)]
    assert not made.drained
    assert made.feed_came(2, Hello("q", 0, 6)) == []
    assert made.drained


# -- keys -----------------------------------------------------------------------------------


def test_a_key_is_in_service_once_and_holds_up_no_other():
    made, _ = desk(k=3)
    came = [record(0, key="a"), record(1, key="a"), record(2, key="b"), record(3)]
    given_out = of(Give, made.records_came(1, came, 0.0))
    assert [g.records[0].number for g in given_out] == [0, 2, 3]
    (more,) = of(Give, made.processor_done(1, [Result([])], 1.0))
    assert more.records[0].number == 1


def test_one_that_is_tried_again_is_not_overtaken_by_its_key():
    made, _ = desk(k=2, on_error=OnError(retries=1))
    made.records_came(1, [record(0, key="a"), record(1, key="a")], 0.0)
    (again,) = of(Give, made.processor_done(1, [Result([], "ValueError")], 1.0))
    assert again.records[0].number == 0
    assert (
        of(Give, made.processor_died(again.processor, "killed", 2.0))[0].records[0].number == 0
    )


def test_those_behind_one_that_failed_in_the_same_group_wait_behind_it():
    made = light(1, on_error=OnError(retries=1))
    came = [record(number, key="a") for number in range(1, 10)]
    (group,) = of(Give, made.records_came(1, came, 1.0))
    assert [r.number for r in group.records] == list(range(1, 9))
    results = [Result([]), Result([], "ValueError"), *[Result([], skipped=True)] * 6]
    (again,) = of(Give, made.processor_done(1, results, 2.0))
    assert [r.number for r in again.records] == [2]
    (rest,) = of(Give, made.processor_done(1, [Result([])], 2.0))
    assert [r.number for r in rest.records][:2] == [3, 4]


def test_a_record_that_stops_the_application_keeps_those_of_its_key_behind_it():
    """It may be tried again when it comes again, and must not come after them."""
    made, _ = desk(k=2)
    made.records_came(1, [record(0, key="a"), record(1, key="a")], 0.0)
    done = made.processor_done(1, [Result([], "ValueError")], 1.0)
    assert of(Fail, done)
    assert not of(Give, done)
    made.feed_left(1)
    made.feed_came(2, Hello("q", 0, 0))
    again = [record(0, key="a"), record(1, key="a")]
    (give,) = of(Give, made.records_came(2, again, 2.0))
    assert give.records[0].number == 0
    (give,) = of(Give, made.processor_done(give.processor, [Result([])], 3.0))
    assert give.records[0].number == 1


def test_one_that_stopped_the_application_and_does_not_come_again_is_not_waited_for():
    made, _ = desk(k=1)
    made.records_came(1, [record(0, key="a"), record(1, key="a")], 0.0)
    made.processor_done(1, [Result([], "ValueError")], 1.0)
    made.feed_left(1)
    made.feed_came(2, Hello("q", 0, 1))
    made.records_came(2, [record(1, key="a")], 2.0)
    made.feed_ended(2)
    assert of(Give, made.time_passed(3.0))[0].records[0].number == 1


def test_records_that_wait_for_their_key_do_not_keep_others_in_kafka():
    made, credit = desk(k=4, ahead=2)
    came = [record(number, key="hot") for number in range(credit)]
    granted = of(Grant, made.records_came(1, came, 0.0))
    assert sum(grant.number for grant in granted) == credit - 1
    sent = credit
    while more := sum(grant.number for grant in granted):
        came = [record(number, key="hot") for number in range(sent, sent + more)]
        granted, sent = of(Grant, made.records_came(1, came, 0.0)), sent + more
    assert sent < 200  # and yet one key does not bring the whole stream in


def busy(keys, *, k=20, records=4000):
    """Return the part of their time that *k* processors work, if there is always more."""
    chance = Random(7)
    made, credit = desk(k=k)
    sent, now_s, worked_s = 0, 0.0, 0.0
    ends = []

    def do(instructions):
        nonlocal credit
        for instruction in instructions:
            if isinstance(instruction, Grant):
                credit += instruction.number
            if isinstance(instruction, Give):
                took_s = chance.expovariate(1 / 0.1)
                heappush(ends, (now_s + took_s, instruction.processor, took_s))

    while sent < records:
        while credit:
            key = chance.choice(keys) if keys else None
            credit, sent = credit - 1, sent + 1
            do(made.records_came(1, [record(sent, key=key)], now_s))
        now_s, name, took_s = heappop(ends)
        worked_s += took_s
        do(made.processor_done(name, [Result([], took_s=took_s)], now_s))
    return worked_s / (k * now_s)


def test_reading_by_key_uses_processors_as_well_as_not():
    """Dealt out by the hash of the key, 20 processors were 55 % busy."""
    shuffled = busy([])
    assert shuffled > 0.97
    assert busy([f"key-{n}" for n in range(1000)]) > shuffled - 0.03
    assert busy([f"key-{n}" for n in range(100)]) > shuffled - 0.03


# -- records for everyone -------------------------------------------------------------------


def test_a_record_for_everyone_is_answered_when_all_have_done_it():
    made, _ = desk(k=3)
    given_out = of(Give, made.records_came(1, [record(0, everyone=True)], 0.0))
    assert [g.processor for g in given_out] == [1, 2, 3]
    assert of(Reply, made.processor_done(1, [Result(out("a"), "")], 1.0)) == []
    assert of(Reply, made.processor_done(2, [Result(out("b"), "")], 1.0)) == []
    (reply,) = of(Reply, made.processor_done(3, [Result(out("c"), "")], 1.0))
    assert [o.payload for o in reply.answer.outputs] == [b"a", b"b", b"c"]


def test_one_that_dies_does_not_keep_everyone_waiting():
    made, _ = desk(k=2, on_error=OnError(retries=9))
    made.records_came(1, [record(0)], 0.0)
    made.records_came(1, [record(1, everyone=True)], 0.0)
    made.processor_done(2, [Result([], "")], 1.0)
    done = made.processor_died(1, "killed by signal 9", 1.0)
    assert 1 in [r.answer.number for r in of(Reply, done)]


def test_one_that_fails_at_some_is_answered_once_with_what_the_others_made_of_it():
    made, _ = desk(k=3, on_error=OnError(retries=1, then="dead_letter"))
    made.records_came(1, [record(0, everyone=True)], 0.0)
    done = made.processor_done(1, [Result([], "ValueError: first", traceback="at 1")], 1.0)
    assert [g.processor for g in of(Give, done)] == [1]
    done += made.processor_done(1, [Result([], "ValueError: first", traceback="at 1")], 1.0)
    done += made.processor_done(2, [Result(out("b"))], 1.0)
    assert of(Reply, done) == []
    for _ in range(2):
        done += made.processor_done(3, [Result([], "ValueError: second")], 1.0)
    (reply,) = of(Reply, done)
    told = reply.answer
    assert (told.dead, told.traceback, told.tries) == ("ValueError: first", "at 1", 2)
    assert list(told.outputs) == out("b")
    assert made.operator.dead == 1


def test_one_that_nobody_did_because_all_are_gone_waits_for_the_next():
    made, _ = desk(k=1)
    made.records_came(1, [record(0, everyone=True)], 0.0)
    done = made.processor_died(1, "killed", 1.0)
    assert of(Reply, done) == []
    (started,) = of(StartProcessor, done)
    (again,) = of(Give, made.processor_ready(started.processor, 2.0))
    assert again.records[0].number == 0
    assert of(Fail, made.processor_died(started.processor, "killed", 3.0))


def test_one_that_is_to_be_tried_again_does_without_a_processor_that_goes():
    made, _ = desk(k=2, on_error=OnError(retries=1))
    made.records_came(1, [record(0, everyone=True)], 0.0)
    made.scaled(1, 0.0)
    made.processor_done(2, [Result([], "ValueError")], 1.0)
    (reply,) = of(Reply, made.processor_done(1, [Result(out("a"))], 2.0))
    assert (reply.answer.dead, list(reply.answer.outputs)) == ("", out("a"))
    assert made.feeds == 1


def test_one_that_hangs_somewhere_follows_the_policy():
    made, _ = desk(k=2, on_error=OnError(then="dead_letter"))
    made.records_came(1, [record(0, everyone=True)], 0.0)
    made.processor_done(1, [Result(out("a"))], 1.0)
    (reply,) = of(Reply, made.processor_died(2, "longer than 1 s", 2.0, late=True))
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
            for start in of(StartProcessor, made.scaled(made.operator.wanted + 1, 9.0))
        )
    told, instructions = [], made.processor_ready(name, 9.0)
    while lessons := [give for give in of(Give, instructions) if give.processor == name]:
        (give,) = lessons
        if give.new:
            break
        told += [record.number for record in give.records]
        instructions = made.processor_done(name, [Result(out("x"))] * len(give.records), 9.0)
        assert of(Reply, instructions) == []  # what it makes of them is nobody's
    return told


def test_one_that_starts_later_gets_the_latest_of_each_key_before_its_first_record():
    made, _ = desk(k=1, ahead=9)
    for number, key in enumerate(["a", "b", "a"]):
        made.records_came(1, [rule(number, key)], 0.0)
        made.processor_done(1, [Result([])], 1.0)
    made.records_came(1, [record(3, everyone=True)], 2.0)  # without a key nothing is kept
    made.processor_done(1, [Result([])], 2.0)
    assert told_to_a_new_one(made) == [1, 2]
    assert made.operator.running == 2


def test_one_that_starts_while_a_rule_is_under_way_gets_it_too():
    made, _ = desk(k=1)
    made.records_came(1, [rule(0, "a")], 0.0)
    assert told_to_a_new_one(made) == []
    assert of(Reply, made.processor_done(1, [Result([])], 1.0)) == []
    assert of(Reply, made.processor_done(2, [Result([])], 1.0))


def test_it_counts_as_running_once_it_knows_all():
    made, _ = desk(k=1)
    made.records_came(1, [rule(0, "a")], 0.0)
    made.processor_done(1, [Result([])], 1.0)
    (start,) = of(StartProcessor, made.scaled(2, 2.0))
    (give,) = of(Give, made.processor_ready(start.processor, 3.0))
    assert (give.new, made.operator.running) == (False, 1)
    assert made.operator.late(9.0, 5.0) == [start.processor]
    made.processor_done(start.processor, [Result([], "ValueError")], 4.0)
    assert made.operator.running == 2


def test_what_it_has_to_know_is_told_in_portions():
    made, _ = desk(k=1)
    for number in range(150):
        made.records_came(1, [rule(number, f"key-{number}")], 0.0)
        made.processor_done(1, [Result([])], 1.0)
    (start,) = of(StartProcessor, made.scaled(2, 2.0))
    (give,) = of(Give, made.processor_ready(start.processor, 3.0))
    assert len(give.records) == 100
    some = made.processor_done(start.processor, [Result([])] * 99, 8.0)
    assert of(Give, some) == []
    assert made.operator.late(9.0, 5.0) == []  # each has its own time
    (give,) = of(Give, made.processor_done(start.processor, [Result([])], 9.0))
    assert [r.number for r in give.records] == list(range(100, 150))


def test_what_failed_everywhere_is_not_kept():
    made, _ = desk(k=1, on_error=OnError(then="dead_letter"))
    made.records_came(1, [rule(0, "a")], 0.0)
    made.processor_done(1, [Result([])], 1.0)
    made.records_came(1, [rule(1, "a")], 2.0)
    made.processor_done(1, [Result([], "ValueError")], 3.0)
    assert told_to_a_new_one(made) == [0]


def test_what_there_is_no_room_for_is_said_and_reaches_those_that_run():
    made, _ = desk(k=1, latest=Latest(most=1))
    made.records_came(1, [rule(0, "a")], 0.0)
    made.processor_done(1, [Result([])], 1.0)
    made.records_came(1, [rule(1, "b")], 2.0)
    done = made.processor_done(1, [Result([])], 3.0)
    (said,) = of(NotKept, done)
    assert (said.record.number, said.reason) == (1, "the limit of 1 keys is reached")
    assert of(Reply, done)
    assert told_to_a_new_one(made) == [0]


def test_bytes_are_bounded_too():
    latest = Latest(most_bytes=10)
    assert latest.keep(1, Record(1, "a", b"12345678", key="a")) == ""
    assert latest.keep(2, Record(2, "b", b"123", key="b")).startswith("the limit of")
    assert latest.keep(3, Record(3, "c", b"1", key="a")) == ""
    assert latest.keep(4, Record(4, "d", b"123", key="b")) == ""
    assert [record.number for record in latest.records] == [3, 4]


def test_a_rule_that_kills_those_that_learn_it_is_found_and_dropped():
    made, _ = desk(k=1)
    for number in range(3):
        made.records_came(1, [rule(number, f"key-{number}")], 0.0)
        made.processor_done(1, [Result([])], 1.0)
    (start,) = of(StartProcessor, made.scaled(2, 2.0))
    (give,) = of(Give, made.processor_ready(start.processor, 2.0))
    assert len(give.records) == 3
    (start,) = of(StartProcessor, made.processor_died(start.processor, "killed", 3.0))
    (give,) = of(Give, made.processor_ready(start.processor, 4.0))
    assert [r.number for r in give.records] == [0]
    done = made.processor_died(start.processor, "killed", 5.0)
    assert [(said.record.number, said.reason) for said in of(NotKept, done)] == [(0, "killed")]
    (start,) = of(StartProcessor, done)
    assert told_to_a_new_one(made, start.processor) == [1, 2]

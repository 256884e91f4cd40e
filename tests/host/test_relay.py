"""What runs in a Spark task, without Spark: records to a real host and back."""

import json
import os
import signal
import threading
import time
from itertools import pairwise

import pytest

from host.relaying import BORN, batch_of, by_line, headers_of, route_of
from sojourn.app.operator import OnError
from sojourn.errors import BadInput, EngineError
from sojourn.spark.host.batch.cut import CutId
from sojourn.spark.host.batch.cut_store import CutFiles
from sojourn.spark.processor.operator_job import of_application
from sojourn.spark.processor.processor import load
from sojourn.spark.wire.record import Record

APP = "unit.spark.host.application:app split"


def line(text):
    return json.dumps({"line": text}).encode()


def test_every_record_comes_back_and_says_where_it_comes_from(host):
    rows = host(processors=3).results(*[line(f"one{n} two{n}") for n in range(50)])
    assert {json.loads(row["value"])["word"] for row in rows} == {
        f"<{word}{n}>" for word in ("one", "two") for n in range(50)
    }
    assert {row["topic"] for row in rows} == {"words-topic"}
    told = [headers_of(row) for row in rows]
    assert len({h["sojourn-id"] for h in told}) == 100
    assert {h["sojourn-root"] for h in told} == {f"lines/3/{n}".encode() for n in range(50)}
    assert {float(h["sojourn-birth"]) for h in told} == {BORN.timestamp()}


@pytest.mark.parametrize(("ends", "told"), [("known", [b"known/lines/3"]), ("", [])])
def test_java_is_told_where_a_partition_ends_of_which_many_records_wait(
    host, controller, ends, told
):
    query = host()
    query.ends = ends

    def brought():
        yield query.row(line("one"))
        query.await_done()
        for end in (30, 500, 500):  # few, many, nothing new
            controller.tell_ends({"lines": {3: end, 4: 900}, "others": {3: 900}})

    word, *rows = query.rows_of(brought())
    assert word["topic"] == "words-topic"
    assert [row["key"] for row in rows] == told
    assert all((row["topic"], row["value"]) == (None, b"500") for row in rows)


def test_roots_carry_the_mark_of_their_topic(host):
    marks = {"lines": "topic-epoch", "others": "nothing"}
    route = route_of("split", marks=marks, signing_key=b"key", partitions={"words-topic": 1})
    (row,) = host(route=route).results(line("word"))
    told = headers_of(row)
    assert told["sojourn-root"] == b"lines@topic-epoch/3/0"
    assert told["sojourn-id"] == b"lines@topic-epoch/3/0.split.0"
    assert told["sojourn-input"].startswith(b"split lines@topic-epoch/3/0 0 ")


def test_results_say_below_which_offset_all_had_left_before_their_batch(host):
    query = host(route=route_of("split", signing_key=b"key", partitions={"words-topic": 1}))
    told = [
        headers_of(row)["sojourn-input"].split()[1:3]
        for _ in range(2)
        for row in query.results(line("one"), line("two"))
    ]
    assert [b" ".join(each) for each in told] == [
        b"lines/3/0 0",
        b"lines/3/1 0",
        b"lines/3/2 2",
        b"lines/3/3 2",
    ]


def test_what_came_with_a_record_is_passed_on(host):
    given = [
        {"key": "sojourn-root", "value": b"root-1"},
        {"key": "sojourn-birth", "value": b"12.5"},
        {"key": "sojourn-written", "value": b"nonsense"},
    ]
    (row,) = host().results(line("word"), headers=given)
    told = headers_of(row)
    assert (told["sojourn-root"], told["sojourn-birth"]) == (b"root-1", b"12.5")


CHILD = [
    {"key": "sojourn-id", "value": b"root-1.parse.0"},
    {"key": "sojourn-root", "value": b"root-1"},
]


def test_a_function_that_asks_for_it_gets_the_same_id_wherever_its_record_stands(host):
    query, lines = host("named"), [line("a"), line("b")]
    told = [json.loads(row["value"]) for row in query.results(*lines, headers=CHILD)]
    assert {row["id"] for row in told} == {"<root-1.parse.0>"}
    roots = [json.loads(row["value"]) for row in query.results(*lines)]
    assert {row["id"] for row in roots} == {"<lines/3/2>", "<lines/3/3>"}


def test_records_of_a_key_are_served_one_after_the_other_by_all_processors(host):
    query = host("timed", processors=3, route=route_of("timed", keyed=by_line("timed")))
    rows = query.results(*[line(f"{n % 5}") for n in range(60)])
    by_key = {}
    for row in rows:
        told = json.loads(row["value"])
        offset = int(headers_of(row)["sojourn-root"].decode().rsplit("/")[-1])
        by_key.setdefault(told["line"], []).append((told["began"], offset, told["ended"]))
    assert len(by_key) == 5
    for served in by_key.values():
        served.sort()
        assert len(served) == 12
        assert [offset for _, offset, _ in served] == sorted(o for _, o, _ in served)
        assert all(ended <= began for (_, _, ended), (began, *_) in pairwise(served))


def killed(controller, operator):
    """Kill the host of an operator, and return when that was seen."""
    os.kill(controller.pid(operator), signal.SIGKILL)
    while not controller.ended():
        time.sleep(0.01)


def test_a_processor_that_starts_later_learns_the_latest_of_each_key(host, controller):
    route = route_of("learn", keyed=by_line("learn"))
    query = host("learn", everyone=True, route=route)
    assert len(query.results(line("a"), line("b"), line("a"))) == 3
    controller.scale("learn", 2)
    controller.await_running("learn", 2)
    rows = [json.loads(row["value"]) for row in query.results(line("c"))]
    assert len({row["processor"] for row in rows}) == 2
    assert sorted(row["line"] for row in rows) == ["a,b,a,c", "b,a,c"]
    killed(controller, "learn")
    host("learn", everyone=True, route=route)
    (row,) = query.results(line("d"))
    assert json.loads(row["value"])["line"] == "b,a,c,d"  # they are in the cut


def test_one_for_everyone_that_fails_at_some_is_a_dead_letter_beside_the_others(host, tmp_path):
    on_error = OnError(then="dead_letter")
    query = host("first_raises", everyone=True, processors=3, on_error=on_error)
    rows = query.results(line(str(tmp_path / "folder")))
    assert sorted(row["topic"] for row in rows) == ["dead-topic", "words-topic", "words-topic"]
    assert len({headers_of(row)["sojourn-id"] for row in rows}) == 3


def test_a_record_for_everyone_reaches_every_processor(host):
    rows = host("who", everyone=True, processors=3).results(line("all"))
    assert len({json.loads(row["value"])["processor"] for row in rows}) == 3
    assert all(json.loads(row["value"])["line"] == "all" for row in rows)


def test_what_does_not_fit_is_a_dead_letter_with_the_reason(host):
    (row,) = host(on_error=OnError(then="dead_letter")).results(b"no json")
    assert (row["topic"], row["value"]) == ("dead-topic", b"no json")
    assert b"is not JSON" in headers_of(row)["sojourn-error"]


def test_or_stops_the_task_with_the_place_of_the_record(host, controller):
    with pytest.raises(EngineError, match=r"split: record lines/3/0: .*is not JSON"):
        host().results(b"no json")
    while not controller.stopped():  # it is told by another connection
        time.sleep(0.005)
    assert "record lines/3/0: " in controller.stopped()["split"]


def test_an_empty_batch_is_finished_at_once(host):
    assert host().results() == []


def test_a_batch_ends_when_spark_knows_how_many_tasks_it_has(host, controller):
    told = [None, None, 1]
    controller.tasks = lambda _stage: told.pop(0)
    assert len(host().results(line("word"))) == 1
    assert told == []


def test_what_spark_raises_is_raised(host):
    query = host()

    def broken():
        yield query.row(line("word"))
        raise RuntimeError("the reader broke")

    with pytest.raises((RuntimeError, EngineError)):
        query.rows_of(broken())


def test_two_rows_of_one_offset_fail_the_task(host):
    """A query of the user's own might make several of one, and only one would be taken."""
    query = host()
    twice = [batch_of(5, line("word")), batch_of(5, line("word"))]
    with pytest.raises(EngineError, match=r"offset 5 of lines\[3\] came after 5; a part needs"):
        query.rows_of(twice, wait=False)


def done(rows):
    return [json.loads(row["value"])["line"] for row in rows]


def test_what_is_open_when_a_batch_ends_is_in_its_cut_and_left_to_the_next(host, tmp_path):
    query = host("slowly", processors=2)
    words = [f"word{n}" for n in range(6)]
    first = done(query.rows_of([query.row(line(word)) for word in words], wait=False))
    assert len(first) < 6
    cut = CutFiles(tmp_path / "cuts").load(CutId(0, 1))
    assert cut.taken == {("lines", 3): 6}
    assert {json.loads(o.record.payload)["line"] for o in cut.open} == set(words) - set(first)
    assert sorted(first + done(query.results())) == words


def test_what_is_open_is_done_by_the_next_host(host, controller):
    query = host("slowly", processors=2)
    words = [f"word{n}" for n in range(6)]
    first = done(query.rows_of([query.row(line(word)) for word in words], wait=False))
    killed(controller, "slowly")
    host("slowly", processors=2)
    query.run = "another run"
    assert sorted(first + done(query.results())) == words


def test_a_relay_fails_with_its_host_and_the_batch_is_done_by_the_next(host, controller):
    query = host("slowly", processors=2)
    words = [f"word{n}" for n in range(20)]
    rows = [query.row(line(word)) for word in words]
    killing = threading.Timer(0.3, killed, [controller, "slowly"])
    killing.start()
    with pytest.raises(EngineError, match="slowly: the connection to its host is lost"):
        query.rows_of(rows)
    killing.join()
    host("slowly", processors=2)
    query.run = "another run"
    assert sorted(done(query.rows_of(rows))) == sorted(words)  # all, and none twice
    assert query.state().repeated > 0  # the log of the other one tells what was taken


def test_a_batch_that_is_run_again_takes_nothing_twice(host):
    query = host("slowly", processors=2)
    rows = [query.row(line(f"word{n}")) for n in range(4)]
    once = query.rows_of(rows)
    query.run, query.batch = "another run", 0
    again = query.rows_of(rows)
    assert [headers_of(row) for row in again] == [headers_of(row) for row in once]
    assert query.state().repeated == 4


def test_a_batch_under_way_while_all_is_drained_waits_for_what_is_open(host, controller):
    query = host("slowly", processors=2)
    words = [f"word{n}" for n in range(8)]
    threading.Timer(0.05, controller.drain).start()
    rows = query.rows_of([query.row(line(word)) for word in words], wait=False)
    assert sorted(done(rows)) == words
    assert query.state().clean == 0


def test_a_cut_that_cannot_be_read_is_said(host, controller, tmp_path):
    query = host()
    query.results(line("word"))
    (tmp_path / "cuts" / "cuts" / "0-1").write_bytes(b"nonsense")
    killed(controller, "split")
    host()
    with pytest.raises(EngineError, match="split: the connection to its host is lost"):
        query.results(line("word"))
    while not controller.ended():
        time.sleep(0.01)
    assert "0-1" in controller.ended()["split"]
    assert "--fresh" in controller.ended()["split"]


def test_a_host_that_does_not_come_again_fails_the_task(host, controller):
    query = host()
    query.patience_s = 0.1
    killed(controller, "split")
    with pytest.raises(EngineError, match="split: no connection to its host within"):
        query.results(line("word"))


def test_nobody_goes_on_reading_for_a_task_that_has_failed(host, controller):
    """Who reads would wait for credit for ever."""
    query = host("slowly")
    threading.Timer(0.2, killed, [controller, "slowly"]).start()
    with pytest.raises(EngineError, match="the connection to its host is lost"):
        query.results(*[line("word")] * 50)
    readers = [thread for thread in threading.enumerate() if "_pass_on" in thread.name]
    for reader in readers:
        reader.join(timeout=60)
    assert not any(reader.is_alive() for reader in readers)


def test_an_operator_that_is_no_function_is_refused():
    with pytest.raises(BadInput, match="no Python operator 'merge'"):
        of_application("unit.spark.host.application:app merge")


def test_a_job_calls_the_function_with_what_set_up_made():
    job = of_application(APP)
    job.set_up()
    outputs = list(job(Record("id", b'{"line": "a b"}', stream="lines")))
    assert [output.payload for output in outputs] == [b'{"word":"<a>"}', b'{"word":"<b>"}']


@pytest.mark.parametrize(
    "spec", ["nowhere:job", "unit.spark.host.jobs:nothing", "unit.spark.host.jobs"]
)
def test_a_job_that_is_not_there_is_refused(spec):
    with pytest.raises(BadInput, match="cannot be loaded"):
        load(spec)

"""What runs in a Spark task, without Spark: records to a real host and back."""

import json
import os
import signal
import threading
import time
from dataclasses import replace
from itertools import pairwise

import pyarrow as pa
import pytest

from host.relaying import BORN, LINES, ROUTE, ROW, batches, headers_of, results
from sojourn.app.operator import OnError
from sojourn.errors import BadFile, BadInput, EngineError
from sojourn.host.job import load
from sojourn.host.messages import Hello, Record
from sojourn.host.operator_job import of_application
from sojourn.spark.carry_over import CarryOver
from sojourn.spark.relay import relay

APP = "unit.host.application:app split"


def test_every_record_is_answered_and_says_where_it_comes_from(host):
    lines = [json.dumps({"line": f"one{n} two{n}"}).encode() for n in range(50)]
    rows = results(host(processors=3), *lines)
    assert {json.loads(row["value"])["word"] for row in rows} == {
        f"<{word}{n}>" for word in ("one", "two") for n in range(50)
    }
    assert {row["topic"] for row in rows} == {"words-topic"}
    told = [headers_of(row) for row in rows]
    assert len({h["sojourn-id"] for h in told}) == 100
    assert {h["sojourn-root"] for h in told} == {f"lines/3/{n}".encode() for n in range(50)}
    assert {float(h["sojourn-birth"]) for h in told} == {BORN.timestamp()}


def test_roots_carry_the_mark_of_their_topic(host):
    route = replace(ROUTE, marks={"lines": "topic-epoch", "others": "nothing"})
    (row,) = results(host(), b'{"line": "word"}', route=route)
    told = headers_of(row)
    assert told["sojourn-root"] == b"lines@topic-epoch/3/0"
    assert told["sojourn-id"] == b"lines@topic-epoch/3/0.split.0"


def test_what_came_with_a_record_is_passed_on(host):
    given = [
        {"key": "sojourn-root", "value": b"root-1"},
        {"key": "sojourn-birth", "value": b"12.5"},
        {"key": "sojourn-written", "value": b"nonsense"},
    ]
    (row,) = results(host(), b'{"line": "word"}', headers=given)
    told = headers_of(row)
    assert (told["sojourn-root"], told["sojourn-birth"]) == (b"root-1", b"12.5")


CHILD = [
    {"key": "sojourn-id", "value": b"root-1.parse.0"},
    {"key": "sojourn-root", "value": b"root-1"},
]


def began(path, *values, **fields):
    rows = results(path, *values, **fields)
    return [json.loads(row["value"])["began"] for row in rows]


def test_what_an_operator_repeats_is_not_processed_again_by_the_next(host):
    path = host(argument=APP.replace("split", "timed"))
    (first,) = began(path, b'{"line": "a"}', headers=CHILD)
    at_other_offsets = began(path, *[b'{"line": "b"}'] * 2, b'{"line": "a"}', headers=CHILD)
    assert first in at_other_offsets
    assert len({first, *at_other_offsets}) > 1


def test_what_is_put_back_in_is_processed_again(host):
    path = host(argument=APP.replace("split", "timed"))
    route = replace(ROUTE, operator="timed")
    told = [*CHILD, {"key": "sojourn-for", "value": b"dead-topic/timed"}]
    first, again = began(path, *[b'{"line": "a"}'] * 2, headers=told, route=route)
    assert first < again


def test_a_function_that_asks_for_it_gets_the_same_id_wherever_its_record_stands(host):
    path = host(argument=APP.replace("split", "named"))
    route = replace(ROUTE, writes={"named": "words-topic"})
    lines = [b'{"line": "a"}', b'{"line": "b"}']
    told = [
        json.loads(row["value"]) for row in results(path, *lines, route=route, headers=CHILD)
    ]
    assert {row["id"] for row in told} == {"<root-1.parse.0>"}
    roots = [json.loads(row["value"]) for row in results(path, *lines, route=route)]
    assert {row["id"] for row in roots} == {"<lines/3/0>", "<lines/3/1>"}


def test_records_of_a_key_are_served_one_after_the_other_by_all_processors(host):
    route = replace(ROUTE, keyed={"lines": LINES.by("line")})
    lines = [json.dumps({"line": f"{n % 5}"}).encode() for n in range(60)]
    path = host(processors=3, argument=APP.replace("split", "timed"))
    rows = results(path, *lines, route=route)
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


def test_a_processor_that_starts_later_learns_the_latest_of_each_key(
    host, controller, monkeypatch
):
    route = replace(ROUTE, everyone=frozenset(["lines"]), keyed={"lines": LINES.by("line")})
    path = host(argument=APP.replace("split", "learn"))
    first = results(path, b'{"line": "a"}', b'{"line": "b"}', b'{"line": "a"}', route=route)
    assert len(first) == 3
    controller.scale("split", 2)
    controller.await_running("split", 2)
    monkeypatch.setattr("sojourn.spark.relay._hello", lambda: Hello("", 0, 1))
    rows = [json.loads(row["value"]) for row in results(path, b'{"line": "c"}', route=route)]
    assert len({row["processor"] for row in rows}) == 2
    assert sorted(row["line"] for row in rows) == ["a,b,a,c", "b,a,c"]
    os.kill(controller.pid("split"), signal.SIGKILL)
    while not controller.ended():
        time.sleep(0.01)
    path = host(argument=APP.replace("split", "learn"))
    monkeypatch.setattr("sojourn.spark.relay._hello", lambda: Hello("", 0, 2))
    (row,) = results(path, b'{"line": "d"}', route=route)
    assert json.loads(row["value"])["line"] == "b,a,c,d"  # those of the host before it


def test_one_for_everyone_that_fails_at_some_is_a_dead_letter_beside_the_others(host, tmp_path):
    route = replace(ROUTE, everyone=frozenset(["lines"]))
    path = host(
        processors=3,
        argument=APP.replace("split", "first_raises"),
        on_error=OnError(then="dead_letter"),
    )
    line = json.dumps({"line": str(tmp_path / "folder")}).encode()
    rows = results(path, line, route=route)
    assert sorted(row["topic"] for row in rows) == ["dead-topic", "words-topic", "words-topic"]
    assert len({headers_of(row)["sojourn-id"] for row in rows}) == 3


def test_a_record_for_everyone_reaches_every_processor(host):
    route = replace(ROUTE, everyone=frozenset(["lines"]))
    path = host(processors=3, argument=APP.replace("split", "who"))
    rows = results(path, b'{"line": "all"}', route=route)
    assert len({json.loads(row["value"])["processor"] for row in rows}) == 3
    assert all(json.loads(row["value"])["line"] == "all" for row in rows)


def test_what_does_not_fit_is_a_dead_letter_with_the_reason(host):
    (row,) = results(host(on_error=OnError(then="dead_letter")), b"no json")
    assert (row["topic"], row["value"]) == ("dead-topic", b"no json")
    assert b"is not JSON" in headers_of(row)["sojourn-error"]


def test_or_stops_the_task_with_the_records_id(host):
    with pytest.raises(EngineError, match=r"split: lines/3/0: .*is not JSON"):
        results(host(), b"no json")


def test_an_empty_batch_is_finished_at_once(host):
    assert results(host()) == []


def test_what_spark_raises_is_raised(host):
    def broken():
        yield from batches(b'{"line": "word"}')
        raise RuntimeError("the reader broke")

    run = relay(str(host()), ROUTE)
    with pytest.raises((RuntimeError, EngineError)):
        list(run(broken()))


def answered_although_killed(host, controller, *, reads):
    """Return the words that came of 30 lines, of which *reads* says when they are read."""
    path = host(processors=2, argument=APP.replace("split", "slowly"))
    first = controller.pid("split")

    def kill():
        os.kill(first, signal.SIGKILL)
        while not controller.ended():
            time.sleep(0.01)
        host(processors=2, argument=APP.replace("split", "slowly"))

    lines = [json.dumps({"line": f"word{n}"}).encode() for n in range(30)]
    run = relay(str(path), ROUTE)
    killing = threading.Timer(0.3, kill)
    killing.start()
    rows = [row for batch in run(reads(batches(*lines))) for row in batch.to_pylist()]
    killing.join()
    assert controller.pid("split") != first
    return [json.loads(row["value"])["line"] for row in rows]


def test_what_a_killed_host_did_not_answer_goes_to_the_next(host, controller):
    words = answered_although_killed(host, controller, reads=lambda some: some)
    assert sorted(words) == sorted(f"word{n}" for n in range(30))  # all, and none twice


def test_although_all_was_read_already(host, controller):
    def all_in_one(some):
        rows = [batch.column(0)[0] for batch in some]
        yield pa.RecordBatch.from_arrays([pa.array(rows[:4], ROW)], ["record"])

    words = answered_although_killed(host, controller, reads=all_in_one)
    assert sorted(words) == sorted(f"word{n}" for n in range(4))


def test_a_host_that_does_not_come_again_fails_the_task(host, controller, monkeypatch):
    monkeypatch.setattr("sojourn.spark.relay._PATIENCE_S", 0.1)
    path = host(argument=APP.replace("split", "slowly"))
    threading.Timer(0.2, os.kill, [controller.pid("split"), signal.SIGKILL]).start()
    with pytest.raises(EngineError, match="split: no connection to its host within"):
        results(path, *[b'{"line": "word"}'] * 10)
    # and nobody goes on reading, who would wait for credit for ever
    readers = [thread for thread in threading.enumerate() if "_feed" in thread.name]
    for reader in readers:
        reader.join(timeout=60)
    assert not any(reader.is_alive() for reader in readers)


@pytest.fixture
def batch(host, tmp_path, monkeypatch):
    """Return what runs a batch, and tells the words that came of it.

    Spark is not there to say which batch it is.
    """
    path = host(processors=2, argument=APP.replace("split", "slowly"))
    files = CarryOver(tmp_path / "carried")

    def run(number, *words, keep=True):
        monkeypatch.setattr("sojourn.spark.relay._hello", lambda: Hello("q", 3, number))
        lines = [json.dumps({"line": word}).encode() for word in words]
        passed = relay(str(path), ROUTE, files if keep else None)(batches(*lines))
        rows = [row for batch in passed for row in batch.to_pylist()]
        return [json.loads(row["value"])["line"] for row in rows]

    return run


def test_what_is_in_service_when_a_batch_ends_is_left_to_the_next(batch, tmp_path):
    first = batch(4, "slow1", "slow2", "slow3")
    assert len(first) < 3  # the last had begun at most when the batch ended
    assert [path.name for path in tmp_path.joinpath("carried").iterdir()] == ["3-4"]
    done = [*first]
    for number in range(5, 15):
        done += batch(number)
    assert sorted(done) == ["slow1", "slow2", "slow3"]
    assert not list(tmp_path.joinpath("carried").iterdir())


def test_a_batch_that_comes_again_brings_what_was_left_to_it(batch):
    first = batch(4, "slow1", "slow2", "slow3")
    left = {"slow1", "slow2", "slow3"} - set(first)
    for _ in range(5):  # in the end all is done
        again = batch(5)
    assert set(again) == left


def test_what_was_left_is_done_by_the_next_host(batch, host, controller):
    first = batch(4, "slow1", "slow2", "slow3")
    os.kill(controller.pid("split"), signal.SIGKILL)
    while not controller.ended():
        time.sleep(0.01)
    host(processors=2, argument=APP.replace("split", "slowly"))
    done = [*first]
    for number in range(5, 15):
        done += batch(number)
    assert sorted(done) == ["slow1", "slow2", "slow3"]


def test_a_batch_under_way_while_all_is_drained_is_waited_for(batch, controller):
    threading.Timer(0.05, controller.drain).start()
    words = [f"word{n}" for n in range(8)]
    said = batch(4, *words)
    assert sorted(said) == words


def test_without_a_place_for_it_a_batch_waits(batch):
    said = batch(4, "slow1", "slow2", "slow3", keep=False)
    assert sorted(said) == ["slow1", "slow2", "slow3"]


def test_what_was_left_and_cannot_be_read_is_said(batch, tmp_path):
    tmp_path.joinpath("carried").mkdir()
    tmp_path.joinpath("carried", "3-4").write_bytes(b"nonsense")
    with pytest.raises(BadFile, match="3-4"):
        batch(5)


def test_an_operator_that_is_no_function_is_refused():
    with pytest.raises(BadInput, match="no Python operator 'merge'"):
        of_application("unit.host.application:app merge")


def test_a_job_calls_the_function_with_what_set_up_made():
    job = of_application(APP)
    job.set_up()
    outputs = list(job(Record(0, "id", b'{"line": "a b"}', stream="lines")))
    assert [output.payload for output in outputs] == [b'{"word":"<a>"}', b'{"word":"<b>"}']


@pytest.mark.parametrize("spec", ["nowhere:job", "unit.host.jobs:nothing", "unit.host.jobs"])
def test_a_job_that_is_not_there_is_refused(spec):
    with pytest.raises(BadInput, match="cannot be loaded"):
        load(spec)

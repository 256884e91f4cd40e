import json
import os
from pathlib import Path

import msgspec
import pytest

import sojourn as sj
from sojourn.app.codec import codec_of
from sojourn.app.reminder import reminders_of
from sojourn.errors import BadInput, BadRecord
from sojourn.spark.processor.operator_job import OperatorJob, of_application
from sojourn.spark.processor.processor import Lent
from sojourn.spark.wire.record import Record, Reminded
from unit.spark.host import application

EXAMPLES = Path(__file__).parents[4] / "examples"


def test_an_operator_of_a_topology_file_waits_and_sends(tmp_path):
    path = tmp_path / "a path with blanks.yaml"
    path.write_text((EXAMPLES / "vld.yaml").read_text().replace("0.50", "0"))
    job = of_application(f"{path} extract")
    job.set_up()
    (sent,) = job(Record("id", b'{"seed":7,"pad":"xxx"}', stream="frames"))
    (again,) = job(Record("id", b'{"seed":7}', stream="frames"))
    assert sent == again
    assert sent.stream == "extract-match"
    assert json.loads(sent.payload).keys() == {"seed"}


def test_a_function_that_asks_for_it_gets_the_id_of_the_record():
    job = of_application("unit.spark.host.application:app named")
    job.set_up()
    (sent,) = job(Record("lines/0/7", b'{"line":"a"}', stream="lines"))
    assert json.loads(sent.payload) == {"id": "<lines/0/7>", "line": "a"}


@pytest.mark.parametrize("payload", [b'{"page":"/"}', b'{"user":null,"page":"/"}'])
def test_a_record_without_its_key_is_an_error_unless_null_is_a_key(payload):
    app = sj.App("shop")
    clicks = app.source("clicks", schema="user string, page string")

    @app.operator(reads=clicks.by("user"), state={"n": 0})
    def strict(state, _user, _page):
        state["n"] += 1

    @app.operator(reads=[clicks.by("user", nulls=True)], state={"n": 0}, emits="user string")
    def lenient(state, _stream, record):
        state["n"] += 1
        yield record[:1]

    record, lent = Record("clicks/0/7", payload, "clicks", key="[null]"), Lent(b"")
    with pytest.raises(
        BadRecord, match=r'^clicks\.user: is null or missing, .* \.by\("user", n'
    ):
        list(OperatorJob(strict)(record, lent))
    assert lent.state == b""
    (sent,) = OperatorJob(lenient)(record, lent)
    assert json.loads(sent.payload) == {"user": None}
    assert lent.state != b""
    fine = Record("clicks/0/8", b'{"user":"ada"}', "clicks", key='["ada"]')
    assert list(OperatorJob(strict)(fine, Lent(b""))) == []


def test_a_function_that_asks_for_nulls_gets_the_columns_of_the_key():
    app = sj.App("shop")
    clicks = app.source("clicks", schema="page string, user string, n int")

    @app.operator(reads=clicks.by("user"), emits="of string", nulls=True)
    def gone(page, user, n):
        yield (f"{user} {page} {n}",)

    @app.operator(reads=[clicks], emits="of string", nulls=True)
    def either(stream, record):
        yield (f"{stream} {record}",)

    @app.operator(reads=clicks, emits="of string")
    def plain(page, _user, _n):
        yield (page,)

    null = Record("clicks/0/7", b"", "clicks", key='["ada"]')
    (sent,) = OperatorJob(gone)(null)
    assert json.loads(sent.payload) == {"of": "ada None None"}
    with pytest.raises(BadRecord, match=r"^clicks\.user: is null or missing"):
        list(OperatorJob(gone)(Record("clicks/0/8", b"", "clicks")))
    (sent,) = OperatorJob(either)(Record("clicks/0/9", b"", "clicks"))
    assert json.loads(sent.payload) == {"of": "clicks (None, None, None)"}
    with pytest.raises(BadRecord, match="is not JSON"):
        list(OperatorJob(plain)(null))


def test_a_set_up_that_yields_cleans_up_at_the_end():
    from unit.spark.host.application import TORN_DOWN  # noqa: PLC0415 - the job imports it too

    before = len(TORN_DOWN)
    job = of_application("unit.spark.host.application:app cleaned_up")
    job.set_up()
    (sent,) = job(Record("lines/0/7", b'{"line":"a"}', stream="lines"))
    assert json.loads(sent.payload) == {"line": "a", "before": before}
    assert len(TORN_DOWN) == before
    job.tear_down()
    assert TORN_DOWN[before:] == [os.getpid()]


def test_a_function_with_a_state_changes_what_it_is_lent_and_is_called_again_when_due():
    job = of_application("unit.spark.host.application:app reminding")
    job.set_up()
    lent = Lent(b"")
    assert not list(job(Record("id", b'{"line":"a"}', stream="lines", key="k"), lent))
    assert [note for _, note in lent.reminders] == ["early 1", "late 1"]
    assert lent.state
    key = codec_of(application.lines).key(b'{"line":"a"}', ("line",))
    due = msgspec.json.encode(Reminded(key=key, note="early 1", due_s=7.0))
    again = Lent(lent.state)
    stream = reminders_of("reminding")
    (sent,) = job(Record("id", due, stream=stream, key="k"), again)
    assert json.loads(sent.payload) == {"line": "a", "note": "early 1"}


def outputs(operator, record):
    job = of_application(f"unit.spark.host.part:app {operator}")
    job.set_up()
    return list(job(record))


def test_what_others_of_the_part_read_by_key_has_a_key_for_each_of_them():
    (sent,) = outputs("split", Record("id", b'{"line":"to be"}', stream="lines"))
    both, first = sent.keys["count"], sent.keys["first"]
    assert sent.keys.keys() == {"count", "first"}
    assert both != first
    (other,) = outputs("split", Record("id", b'{"line":"to do"}', stream="lines"))
    assert (other.keys["first"], other.keys["count"] == both) == (first, False)


def test_what_no_other_of_the_part_reads_by_key_has_none():
    (sent,) = outputs("count", Record("id", b'{"word":"to","next":"be"}', stream="split"))
    assert sent.keys == {}


def test_only_what_goes_to_kafka_has_to_fit_into_a_message():
    line = json.dumps({"line": f"{'w' * 500} x"}).encode()
    (sent,) = outputs("split", Record("id", line, stream="lines", room=100))
    assert len(sent.payload) > 500
    with pytest.raises(BadRecord, match=r"operators\.count\.emits\.count.*Kafka takes 100"):
        outputs("count", Record("id", sent.payload, stream="split", room=100))
    with pytest.raises(BadRecord, match=r"operators\.first\.emits\.first.*Kafka takes 100"):
        outputs("first", Record("id", sent.payload, stream="split", room=100))
    assert outputs("count", Record("id", sent.payload, stream="split"))  # nobody knows


def test_an_operator_that_is_not_named_is_asked_for():
    for argument in ("", "unit.spark.host.application:app", str(EXAMPLES / "vld.yaml")):
        with pytest.raises(BadInput, match="has no operator; write"):
            of_application(argument)


def test_an_operator_that_is_not_there_is_named():
    with pytest.raises(BadInput, match="no Python operator 'detect'"):
        of_application(f"{EXAMPLES / 'vld.yaml'} detect")

"""Whatever is written to a topic, every record is answered once: by what it sends on, or by a
dead letter."""

import json
import math
from contextlib import contextmanager
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from host.relaying import BORN, Query, by_line, headers_of, route_of
from sojourn.app.operator import OnError
from sojourn.spark.driver.hosts.controller import Controller
from sojourn.spark.wire.host_address import HostAddress
from sojourn.spark.wire.host_settings import HostSettings, OperatorSettings
from sojourn.spark.wire.record import MOST_BYTES, message_bytes

DEAD_LETTERS = OnError(retries=1, then="dead_letter")
NESTED = b"[" * 5000
NUMBERS = [
    "nan",
    "inf",
    "-inf",
    "1e400",
    "-1",
    "1e18",
    "253402300800",
    "9" * 25,
    "9" * 5000,
    "",
]


ROUTE = route_of("split")


@contextmanager
def query_of(folder, operator, processors=2, application="application", *, everyone=False):
    """Run a host that makes dead letters, and give its query."""
    folder = folder / f"{operator}-{everyone}"
    with Controller(folder / "all", tasks=lambda _stage: 1) as controller:
        started = OperatorSettings(
            job="sojourn.spark.processor.operator_job:of_application",
            argument=f"unit.spark.host.{application}:app {operator}",
            processors=processors,
            on_error=DEAD_LETTERS,
        )
        path = controller.start(
            HostSettings(
                name=operator,
                operators={operator: started},
                readers={"lines": (operator,)},
                leaving=(operator,),
                everyone=((operator, "lines"),) if everyone else (),
                folder=folder / "host",
                cuts=folder / "cuts",
            )
        )
        controller.await_running(operator, processors)
        yield Query(controller, HostAddress(path=str(path)), route_of(operator))


@pytest.fixture(scope="module")
def query(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", "tests")
        with query_of(tmp_path_factory.mktemp("h"), "split") as running:
            yield running


def header(name, value):
    return {"key": name, "value": value}


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("name", ["trace", "birth", "written"])
def test_a_number_that_cannot_be_is_passed_over(query, name, number):
    told = [
        header("sojourn-id", b"stranger"),
        header("sojourn-root", b"root"),
        header(f"sojourn-{name}", number.encode()),
    ]
    (row,) = query.results(b'{"line": "word"}', headers=told)
    headers = headers_of(row)
    assert row["topic"] == "words-topic"
    assert float(headers["sojourn-birth"]) == BORN.timestamp()
    assert headers["sojourn-trace"] == b"0"
    assert math.isfinite(float(headers["sojourn-written"]))


@pytest.mark.parametrize("timestamp_us", [-1000, -(1 << 62), 1 << 62, None])
def test_a_time_that_cannot_be_is_now(query, timestamp_us):
    (row,) = query.results(b'{"line": "word"}', timestamp_us=timestamp_us)
    assert BORN.timestamp() < float(headers_of(row)["sojourn-birth"]) < 4e9


def test_an_id_that_is_too_long_is_its_hash(query):
    told = [header("sojourn-id", b"i" * 100_000), header("sojourn-root", b"r" * 100_000)]
    first, again = (
        headers_of(query.results(b'{"line": "word"}', headers=told)[0]) for _ in range(2)
    )
    assert first["sojourn-id"] == again["sojourn-id"]
    assert len(first["sojourn-id"]) < 100
    assert len(first["sojourn-root"]) == 64


@pytest.mark.parametrize("told", [b"", b"\xff"])
def test_an_id_that_is_no_text_is_the_position(query, told):
    (row,) = query.results(b'{"line": "word"}', headers=[header("sojourn-id", told)])
    assert headers_of(row)["sojourn-id"].startswith(b"lines/3/")


@pytest.mark.parametrize("root", [b"the-same", b"another"])
def test_records_of_one_id_are_not_taken_for_each_other(query, root):
    told = [header("sojourn-id", b"the-same"), header("sojourn-root", root)]
    words = [
        json.loads(query.results(json.dumps({"line": word}), headers=told)[0]["value"])["word"]
        for word in ("one", "two")
    ]
    assert words == ["<one>", "<two>"]


@pytest.mark.parametrize(
    "value",
    [
        NESTED,
        b'{"line": ' + NESTED,
        b'{"line": ' + b"[" * 900 + b'"\\u00e9"' + b"]" * 900 + b"}",
        b'{"line": ' + b"9" * 5000 + b"}",
        b'{"line": NaN}',
        b'{"line": "\\ud800"}',
        b'{"line": 7, "line": null}',
        b"\xff\xfe",
    ],
)
@pytest.mark.parametrize("keyed", [{}, by_line("split")])
def test_what_does_not_fit_is_one_dead_letter(query, value, keyed):
    (row,) = query.results(value, route=replace(ROUTE, keyed=keyed))
    assert row["topic"] == "dead-topic"
    assert row["value"] == (value or None)
    assert headers_of(row)["sojourn-error"]


def test_a_dead_letter_says_what_happened_and_where_the_record_is(query):
    told = [header("sojourn-id", b"it"), header("trace-parent", b"00-1"), header("none", None)]
    place = query.offset
    (row,) = query.results(b"no json", headers=told, key=b"K")
    headers = headers_of(row)
    assert row["key"] == b"K"
    assert headers["sojourn-id"] == b"it.split.dead"
    assert headers["sojourn-record"] == b"it"
    assert headers["sojourn-operator"] == b"split"
    assert headers["sojourn-stream"] == b"lines"
    assert headers["sojourn-position"] == f"lines/3/{place}".encode()
    assert int(headers["sojourn-tries"]) >= 1
    assert headers["trace-parent"] == b"00-1"
    assert float(headers["sojourn-written"]) > BORN.timestamp()


def test_a_dead_letter_says_where_the_function_raised(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "tests")
    with query_of(tmp_path, "raises", application="stumbling") as query:
        rows = [
            headers_of(row)
            for word in ("It", "half", "long")
            for row in query.results(json.dumps({"line": word}).encode())
        ]
    assert [int(headers["sojourn-tries"]) for headers in rows] == [2, 2, 2]
    it, half, long = rows
    assert it["sojourn-error"] == b"ValueError: It cannot be done"
    assert b"in raises" in it["sojourn-traceback"]
    assert b"is half a letter" in half["sojourn-error"]
    assert len(long["sojourn-error"]) <= 1000
    assert len(long["sojourn-traceback"]) <= 8000
    assert "é" in long["sojourn-error"].decode()


def test_a_record_for_everyone_that_one_cannot_do_is_both(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "tests")
    with query_of(tmp_path, "one_of_us", 3, "stumbling", everyone=True) as query:
        line = json.dumps({"line": str(tmp_path / "first")}).encode()
        rows = query.results(line, headers=[header("sojourn-id", b"it")])
    told = {headers_of(row)["sojourn-id"]: row["topic"] for row in rows}
    assert told.pop(b"it.one_of_us.dead") == "dead-topic"
    assert list(told.values()) == ["words-topic"] * 2
    assert len(rows) == 3


def test_the_key_of_a_message_goes_with_what_comes_of_it(query):
    rows = query.results(b'{"line": "a b"}', key=b"K")
    assert [row["key"] for row in rows] == [b"K", b"K"]


def test_a_record_for_one_operator_is_passed_by_at_the_others(query):
    told = [header("sojourn-id", b"it"), header("sojourn-for", b"dead-topic/who")]
    assert query.results(b'{"line": "word"}', headers=told) == []
    told = [header("sojourn-id", b"it"), header("sojourn-for", b"dead-topic/split")]
    (row,) = query.results(b'{"line": "word"}', headers=told)
    assert headers_of(row)["sojourn-id"] == b"it.split.0"
    assert "sojourn-for" not in headers_of(row)


def size_of(row):
    headers = [(h["key"], h["value"]) for h in row["headers"]]
    return message_bytes(row["key"], row["value"], headers)


def test_what_kafka_would_refuse_is_a_dead_letter(query):
    line = json.dumps({"line": "w" * (MOST_BYTES - 100)}).encode()
    (row,) = query.results(line)
    headers = headers_of(row)
    assert row["topic"] == "dead-topic"
    error = headers["sojourn-error"].decode()
    assert "operators.split.emits.split" in error
    assert "max.request.size" in error
    # and neither would it take the letter, if it had all of the record
    assert size_of(row) <= MOST_BYTES
    assert int(headers["sojourn-cut"]) == len(line)
    assert line.startswith(row["value"])


@pytest.mark.parametrize("spare", [0, 1, 2, 300, 3000])
def test_or_it_fits_with_its_key_and_headers(query, spare):
    """Wherever the limit is crossed, what is written is below it."""
    line = json.dumps({"line": "w" * (MOST_BYTES - 1000 - spare)}).encode()
    told = [header("sojourn-id", b"i" * 150), header("sojourn-root", b"r" * 150)]
    for row in query.results(line, headers=told, key=b"k" * 300):
        assert size_of(row) <= MOST_BYTES


def test_a_key_that_is_too_large_is_left_out_of_the_letter(query):
    (row,) = query.results(b'{"line": "word"}', key=b"k" * MOST_BYTES)
    assert (row["topic"], row["key"]) == ("dead-topic", None)
    assert size_of(row) <= MOST_BYTES


def test_another_limit_holds(query):
    route = replace(ROUTE, most_bytes=2000)
    (row,) = query.results(json.dumps({"line": "w" * 1800}).encode(), route=route)
    assert row["topic"] == "dead-topic"
    assert "sojourn-cut" in headers_of(row)
    assert size_of(row) <= 2000


NAMES = st.sampled_from(
    ["sojourn-id", "sojourn-root", "sojourn-birth", "sojourn-written", "sojourn-trace",
     "sojourn-error", "sojourn-column-line", "other"]
) | st.text(max_size=5)  # fmt: skip
CONTENTS = (
    st.none()
    | st.binary(max_size=20)
    | st.sampled_from(NUMBERS).map(str.encode)
    | st.integers().map(lambda n: str(n).encode())
    | st.floats().map(lambda x: repr(x).encode())
)
HEADERS = st.none() | st.lists(
    st.builds(header, NAMES.filter(lambda name: name != "sojourn-for"), CONTENTS), max_size=6
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)
VALUES = (
    st.none()
    | st.binary(max_size=50)
    | st.sampled_from([NESTED, b'{"line":' + NESTED])
    | JSON.map(lambda value: json.dumps(value).encode())
    | st.builds(lambda value: json.dumps({"line": value}).encode(), JSON | st.text())
)
KEYS = st.none() | st.binary(max_size=10)
TIMES = st.none() | st.integers(-(1 << 63), (1 << 63) - 1)
ROWS = st.lists(st.tuples(VALUES, HEADERS, KEYS, TIMES), min_size=1, max_size=8)


def check_any_records_are_answered_once(folder, examples, *, everyone):
    with query_of(folder, "who", everyone=everyone) as query:
        routes = [query.route, replace(query.route, keyed=by_line("who"))]

        @settings(max_examples=examples, deadline=None)
        @given(ROWS, st.sampled_from(routes))
        def check(rows, route):
            first = query.offset
            came = [
                query.row(value, headers=headers, key=key, timestamp_us=time)
                for value, headers, key, time in rows
            ]
            written = query.rows_of(came, route=route)
            dead = [row for row in written if row["topic"] == "dead-topic"]
            each = 2 if everyone else 1
            values = [value for value, *_ in rows if value]  # others are skipped and counted
            assert len(dead) + (len(written) - len(dead)) / each == len(values)
            told = {headers_of(row)["sojourn-position"] for row in dead}
            assert len(told) == len(dead)
            assert told <= {f"lines/3/{n}".encode() for n in range(first, query.offset)}

        check()


@pytest.mark.parametrize("everyone", [False, True])
def test_any_records_are_answered_once(tmp_path, monkeypatch, everyone):
    monkeypatch.setenv("PYTHONPATH", "tests")
    check_any_records_are_answered_once(tmp_path, 50, everyone=everyone)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("everyone", [False, True])
def test_any_records_are_answered_once_in_the_long_run(tmp_path, monkeypatch, everyone):
    monkeypatch.setenv("PYTHONPATH", "tests")
    check_any_records_are_answered_once(tmp_path, 1000, everyone=everyone)

"""Rows on their way between Spark and Python."""

from dataclasses import replace

import msgspec
import pytest

from sojourn.app.schema import parse_schema
from sojourn.app.stream import Stream
from sojourn.spark.driver.master import STREAMING, TRANSFER_BYTES
from sojourn.spark.task.rows import Route, Rows
from sojourn.spark.wire.record import Record, Root
from sojourn.spark.wire.relay import Results
from sojourn.spark.wire.repetitions import Input, Provenance
from sojourn.spark.wire.signed_inputs import SignedInputs


def test_the_padding_of_a_record_is_larger_than_every_buffer_on_its_way():
    buffers = [int(value) for name, value in STREAMING.items() if name.endswith("buffer.size")]
    assert len(buffers) == 2
    assert max(buffers) < TRANSFER_BYTES


ROUTE = Route(
    part="check",
    operators=("check",),
    reads={"orders-topic": "clean", "tips-topic": "tips"},
    writes={"check": "check-topic", "public": "public-topic", "other": "other-topic"},
    before={"orders-topic": ("clean", "orders")},
    behind={"public": "check", "other": "check"},
    dead_letters="dead",
    retries="retries",
    partitions={"public-topic": 3},
)


def row(topic="orders-topic", told_for=None, stream=None, **fields):
    told = {"sojourn-for": told_for, "sojourn-stream": stream}
    headers = [{"key": name, "value": text.encode()} for name, text in told.items() if text]
    return {
        "topic": topic,
        "partition": 4,
        "offset": 7,
        "key": None,
        "value": b"{}",
        "headers": headers,
        "timestamp_us": 0,
        "error": None,
        **fields,
    }


def test_a_record_is_of_the_stream_that_a_projection_makes_or_as_it_came_if_that_fails():
    came = Rows(ROUTE).came(row())
    assert (came.record.stream, came.refused, came.only) == ("clean", None, None)
    refused = Rows(ROUTE).came(row(error="clean: orders: is not JSON"))
    assert refused.record.stream == "orders"
    assert refused.refused == ("clean", "clean: orders: is not JSON")


@pytest.mark.parametrize(
    ("topic", "operator", "only"),
    [
        ("orders-topic", "clean", None),  # for all that read what it makes
        ("orders-topic", "check", ""),
        ("orders-topic", "public", ""),
        ("orders-topic", "elsewhere", ""),
        ("tips-topic", "check", "check"),
        ("retries", "check", "check"),
        ("retries", "public", "public"),
    ],
)
def test_what_is_put_back_in_is_for_one_operator(topic, operator, only):
    came = Rows(ROUTE).came(row(topic, told_for=f"dead/{operator}", stream="check"))
    assert came.only == only


CLICKS = Stream(
    name="tips",
    columns=("user", "n"),
    schema=parse_schema("user string, n int"),
)


@pytest.mark.parametrize(
    ("key", "by", "found"),
    [
        (b"ada", "user", '["ada"]'),
        (b'"ada"', "user", '["ada"]'),
        (b'{"user": "ada"}', "user", '["ada"]'),
        (b"17", "user", '["17"]'),
        (b"17", "n", "[17]"),
        (b"seven", "n", None),
        (b"\xff", "user", None),
        (None, "user", None),
    ],
)
@pytest.mark.parametrize("value", [None, b""])
def test_a_message_without_a_value_has_the_key_of_the_message(value, key, by, found):
    route = replace(ROUTE, keyed={"tips": (("check", CLICKS.by(by)),)})
    came = Rows(route).came(row("tips-topic", value=value, key=key))
    assert (came.null, came.keys, came.record.payload) == (True, {"check": found}, b"")
    other = Rows(route).came(row("tips-topic", value=b'{"user":"ben","n":3}', key=key))
    assert (other.null, other.keys) == (False, {"check": '["ben"]' if by == "user" else "[3]"})


MARKED = replace(
    ROUTE,
    deduplicates=frozenset(["orders-topic"]),
    marks={"lines": "mark"},
    signing_key=b"key",
)
ENTERED = Input(writer="split", topic="lines@mark", partition=0, offset=7, floor=5)


def told(*inputs, key=b"key"):
    """Return the headers of a record with an id of a producer and *inputs*."""
    signed = SignedInputs(key, frozenset())
    named = [header for entered in inputs for header in signed.header(entered)]
    return [{"key": "sojourn-id", "value": b"order-1"}] + [
        {"key": name, "value": value} for name, value in named
    ]


@pytest.mark.parametrize(
    ("entered", "key", "known"),
    [
        (ENTERED, b"key", True),
        (ENTERED, b"another", False),
        (msgspec.structs.replace(ENTERED, topic="lines@another"), b"key", False),
    ],
)
def test_a_part_that_drops_duplicates_learns_what_a_record_came_of(entered, key, known):
    came = Rows(MARKED).came(row(headers=told(entered, key=key))).provenance
    assert came == Provenance(
        identity="order-1", inputs=(entered,) if known else (), named=True
    )
    assert Rows(ROUTE).came(row(headers=told(entered))).provenance is None


def test_a_record_without_an_id_and_one_that_is_retried_are_no_duplicates():
    assert Rows(MARKED).came(row()).provenance is None
    retried = [*told(ENTERED), {"key": "sojourn-for", "value": b"dead/clean"}]
    came = Rows(MARKED).came(row(headers=retried))
    assert (came.only, came.provenance) == (None, None)


def test_a_reminder_that_is_put_back_in_has_its_key():
    value = b'{"key":"[5]","note":"","due_s":1.5}'
    fields = {"told_for": "dead/check", "stream": "check@reminders", "value": value}
    assert Rows(ROUTE).came(row("retries", **fields)).keys == {"check": "[5]"}
    assert Rows(ROUTE).came(row("retries", **fields | {"value": b"?"})).keys == {"check": None}


@pytest.mark.parametrize(
    ("stream", "topics"),
    [("check", ["check-topic", "public-topic", "other-topic"]), ("public", ["public-topic"])],
)
def test_what_leaves_goes_to_its_topic_and_to_those_of_projections(stream, topics):
    record = Record("x", b"{}", stream, root="x")
    left = Rows(ROUTE).left(Results([(record, Root(("orders-topic", 4), 7), 5)]))
    assert [each["topic"] for each in left] == topics
    assert {each["topic"]: each["partition"] for each in left}["public-topic"] == 4 % 3


@pytest.mark.parametrize("asked", [4, 5])
def test_what_comes_of_a_reminder_goes_where_that_of_the_record_goes_that_asked(asked):
    """All reminders of an operator are one partition, and would fill one of the stream."""
    record = Record("x", b"{}", "public", root="x", position=f"orders-topic/{asked}/7")
    root = Root(("check@reminders", 0), 1_700_000_000_000_000)
    (left,) = Rows(MARKED).left(Results([(record, root, 5)]))
    assert left["partition"] == asked % 3
    (value,) = [
        header["value"] for header in left["headers"] if header["key"] == "sojourn-input"
    ]
    assert value.startswith(b"check check@reminders/0/1700000000000000 5 ")

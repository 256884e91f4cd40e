"""Spark and Python agree on what a record is as JSON, whatever its columns are."""

import struct

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sojourn.app.codec.json import decode, encode
from sojourn.app.datatype import Struct
from sojourn.app.schema import parse_schema
from sojourn.spark.driver.jvm.session import end_session, new_session
from sojourn.spark.driver.native.frame import own_session
from sojourn.spark.driver.native.payload import at, from_payload, misfit, read, to_payload
from sojourn.spark.driver.native.schema import same_kind, schema_of
from unit.app.schemas import SCHEMAS, records

pytestmark = pytest.mark.spark
# numbers of four bytes have fewer digits in Spark than in Python
WITHOUT_FLOATS = SCHEMAS.map(lambda drawn: parse_schema(str(drawn).replace("float", "double")))


@pytest.fixture(scope="module")
def spark(jars):
    session = new_session("payloads", jars=jars, slots=1)
    yield own_session(session)
    end_session(session)


def parsed(spark, schema, bodies):
    frame = spark.createDataFrame([(bytearray(body),) for body in bodies], "value binary")
    return frame.select("value", from_payload(at("value"), schema).alias("parsed from it"))


def misfits(spark, schema, *bodies):
    said = parsed(spark, schema, bodies).select(
        misfit(at("value"), at("parsed from it"), schema)
    )
    return [reason for (reason,) in said.collect()]


def rewritten(spark, schema, bodies):
    """Return what Spark has read, and written again."""
    columns = (read(at("parsed from it"), field).alias(field.name) for field in schema.fields)
    frame = parsed(spark, schema, bodies).select(*columns)
    made = schema_of(frame.schema)
    assert same_kind(Struct(made.fields), Struct(schema.fields))
    return [body.encode() for (body,) in frame.select(to_payload(schema)).collect()]


@settings(
    max_examples=10,
    deadline=None,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)
@given(data=st.data())
def test_what_python_writes_spark_reads_and_what_spark_writes_python_reads(spark, data):
    schema = data.draw(WITHOUT_FLOATS)
    some = data.draw(st.lists(records(schema.fields), min_size=1, max_size=3))
    bodies, binaries = zip(*(encode(schema, record) for record in some), strict=True)
    assert misfits(spark, schema, *bodies) == [None] * len(some)
    again = rewritten(spark, schema, bodies)
    assert [decode(schema, *pair) for pair in zip(again, binaries, strict=True)] == some


def test_numbers_that_json_does_not_have_pass_too(spark):
    schema = parse_schema("a double, b float, c map<double, float>")
    record = (float("-inf"), struct.unpack("f", struct.pack("f", 0.1))[0], {1e300: 2.5})
    nan = b'{"a":"NaN","b":"NaN","c":{"NaN":"NaN"}}'
    again = rewritten(spark, schema, [encode(schema, record)[0], nan])
    assert decode(schema, again[0])[::2] == record[::2]
    assert decode(schema, again[0])[1] == pytest.approx(record[1])
    assert again[1] == nan


def test_decimals_stay_text_and_nulls_are_written(spark):
    schema = parse_schema("a decimal(38,10), b array<decimal(3,1)>, c string")
    body = b'{"a": 1234567890123456789012345678.0123456789, "b": ["1.5", null]}'
    (again,) = rewritten(spark, schema, [body])
    assert again == (
        b'{"a":"1234567890123456789012345678.0123456789","b":["1.5",null],"c":null}'
    )


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "is not JSON that fits"),
        (b"null", "is not JSON that fits"),
        (b"7", "is not JSON that fits"),
        (b'[{"a": 1}]', "is not JSON that fits"),
        (b'{"a": 1', "is not JSON that fits"),
        (b"{'a': 1}", "is not JSON that fits"),
        (b'{"a": 1} and more', "is not JSON that fits"),
        (b'{"a": 1}{"a": 2}', "is not JSON that fits"),
        (b'{"a": "x"}', "is not JSON that fits"),
        (b'{"a": 99999999999}', "is not JSON that fits"),
        (b'{"s": "\xff"}', "is not JSON: it is not UTF-8"),
        (b'{"s": "\\ud800"}', "half a surrogate pair"),
        (b'{"m": {"x": 1}}', "a null or a key that does not fit"),
        (b'{"n": [null, {"b": null}]}', "a null or a key that does not fit"),
    ],
)
def test_what_does_not_fit_is_said(spark, body, said):
    schema = parse_schema("a int, s string, m map<int, int>, n array<struct<b: int not null>>")
    (reason,) = misfits(spark, schema, body)
    assert said in reason


def test_what_other_clients_write_fits(spark):
    schema = parse_schema("a int, s string, m map<int, int>, n array<struct<b: int not null>>")
    bodies = [
        b"{}",
        b'{"more": {"a": 1}, "a": 2}',
        b'{"s": "\\ud83d\\ude00"}',
        b'{"n": [null, {"b": 1}], "m": {"1": null}}',
    ]
    assert misfits(spark, schema, *bodies) == [None] * 4

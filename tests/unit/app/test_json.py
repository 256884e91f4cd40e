import datetime as dt
import json
from decimal import Decimal
from enum import IntEnum
from math import isnan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sojourn.app.codec.json import JsonCodec, decode, encode
from sojourn.app.schema import parse_schema
from sojourn.errors import BadRecord
from sojourn.text import shown
from unit.app.schemas import SCHEMAS, records

NOON = dt.datetime(2024, 12, 31, 12, tzinfo=dt.UTC)
HUGE = b"9" * 5000


def there_and_back(ddl, *record):
    schema = parse_schema(ddl)
    return decode(schema, *encode(schema, record))


@given(st.data())
def test_every_record_comes_back_as_it_went(data):
    schema = data.draw(SCHEMAS)
    record = data.draw(records(schema.fields))
    body, binaries = encode(schema, record)
    json.loads(body, parse_constant=pytest.fail)  # any client can read it
    assert decode(schema, body, binaries) == record


def test_what_json_does_not_have_is_written_as_spark_writes_it():
    schema = parse_schema(
        "a double, b float, c decimal(10,2), d date, e timestamp, f timestamp_ntz, "
        "g array<binary>, h struct<`odd name`: double>, i map<int, boolean>"
    )
    tokyo = dt.timezone(dt.timedelta(hours=9))
    record = (
        float("nan"),
        float("-inf"),
        Decimal("12.5"),
        dt.date(2024, 12, 31),
        dt.datetime(2025, 1, 1, 8, 59, 59, 123456, tzinfo=tokyo),
        dt.datetime(2024, 12, 31),  # noqa: DTZ001
        [b"\xff"],
        (float("inf"),),
        {1: True},
    )
    body, binaries = encode(schema, record)
    assert json.loads(body) == {
        "a": "NaN",
        "b": "-Infinity",
        "c": "12.50",
        "d": "2024-12-31",
        "e": "2024-12-31T23:59:59.123456+00:00",
        "f": "2024-12-31T00:00:00",
        "g": ["/w=="],
        "h": {"odd name": "Infinity"},
        "i": {"1": True},
    }
    assert binaries == {}
    back = decode(schema, body)
    assert isnan(back[0])
    assert back[1:] == record[1:]


def test_nan_is_a_key_once():
    (back,) = there_and_back("a map<double, int>", {float("nan"): 1, 2.0: 2})
    assert [str(key) for key in back] == ["nan", "2.0"]
    with pytest.raises(BadRecord, match=r"record\.a: has two NaN keys"):
        there_and_back("a map<double, int>", {float("nan"): 1, float("nan"): 2})


def test_large_binaries_stay_as_they_are():
    photo = bytes(range(256)) * 4096
    body, binaries = encode(parse_schema("name string, photo binary"), ("a", bytearray(photo)))
    assert body == b'{"name":"a"}'
    assert binaries == {"photo": photo}
    assert there_and_back("name string, photo binary", "a", photo) == ("a", photo)


def test_nothing_and_empty_are_told_apart():
    ddl = "a string, b binary, c array<string>, d map<string, string>"
    for record in ((None,) * 4, ("", b"", [], {})):
        assert there_and_back(ddl, *record) == record


def test_what_other_clients_write_is_read():
    schema = parse_schema(
        "a decimal(20,10), b double, c binary, d timestamp, e float, f string"
    )
    body = b"""
        {"a": 1234567890.1234567891, "b": 3, "c": "/w==", "d": "2024-12-31T12:00:00Z",
         "e": "INF", "more": [1], "f": "\\u00e9"}
    """
    record = (Decimal("1234567890.1234567891"), 3.0, b"\xff", NOON, float("inf"), "é")
    assert decode(schema, body) == record
    assert isinstance(decode(schema, body)[1], float)
    assert decode(schema, b"{}") == (None,) * 6


def test_a_number_with_a_name_is_a_number():
    class Colour(IntEnum):
        RED = 1

    assert there_and_back("a int, b map<int, int>", Colour.RED, {Colour.RED: 2}) == (1, {1: 2})


@pytest.mark.parametrize(
    ("ddl", "value", "place", "problem"),
    [
        ("a string", 7, ".a", "7 (of type int) does not fit string"),
        ("a string", "\ud800", ".a", "half a surrogate pair"),
        ("a map<string, array<string>>", {"k": ["\udfff"]}, ".a", "half a surrogate pair"),
        ("a map<string, int>", {"\ud800": 1}, ".a", "half a surrogate pair"),
        ("a struct<b: string>", ("\ud800",), ".a", "half a surrogate pair"),
        ("a boolean", 1, ".a", "1 (of type int) does not fit boolean"),
        ("a int", True, ".a", "True (of type bool) does not fit int"),
        ("a int", 1.0, ".a", "1.0 (of type float) does not fit int; convert it with int(…)"),
        ("a tinyint", 128, ".a", "128 is out of range for tinyint, -128 to 127"),
        ("a bigint", -(2**63) - 1, ".a", "is out of range for bigint"),
        (
            "a bigint",
            10**5000,
            ".a",
            "a number of thousands of digits is out of range for bigint",
        ),
        ("a double", "1", ".a", "'1' (of type str) does not fit double"),
        ("a double", True, ".a", "True (of type bool) does not fit double"),
        ("a double", 2**53 + 1, ".a", "9007199254740993 would lose digits"),
        ("a double", 10**400, ".a", "is out of range for double"),
        ("a float", 1e39, ".a", "1e+39 is out of range for float, up to 3.4028235e+38"),
        ("a decimal(4,2)", Decimal("1.234"), ".a", "more digits than decimal(4,2)"),
        ("a decimal(4,2)", Decimal("1E+999999"), ".a", "more digits than decimal(4,2)"),
        ("a decimal(4,2)", Decimal("NaN"), ".a", "does not fit decimal(4,2)"),
        ("a decimal(4,2)", 1.25, ".a", "1.25 (of type float) does not fit decimal(4,2)"),
        ("a date", NOON, ".a", "does not fit date"),
        ("a timestamp", NOON.replace(tzinfo=None), ".a", "has no time zone"),
        ("a timestamp", dt.date(2024, 12, 31), ".a", "does not fit timestamp"),
        ("a timestamp_ntz", NOON, ".a", "has a time zone"),
        ("a binary", "text", ".a", "'text' (of type str) does not fit binary"),
        ("a array<int>", "text", ".a", "does not fit array; use a list"),
        ("a array<int>", [1, None, "x"], ".a[2]", "'x' (of type str) does not fit int"),
        ("a map<string, int>", [], ".a", "does not fit map; use a dict"),
        ("a map<string, int>", {1: 1}, ".a.key", "1 (of type int) does not fit string"),
        (
            "a map<string, int>",
            {None: 1},
            ".a.key",
            "None (of type NoneType) does not fit string",
        ),
        ("a map<string, int>", {"k": "x"}, ".a['k']", "'x' (of type str) does not fit int"),
        ("a struct<b: int>", {"b": 1}, ".a", "use a tuple, in the order of its fields"),
        ("a struct<b: int>", (1, 2), ".a", "(1, 2) has 2 values for 1 columns: b int"),
        (
            "a struct<b: array<int>>",
            ([7, "x"],),
            ".a.b[1]",
            "'x' (of type str) does not fit int",
        ),
        ("a int not null", None, ".a", "is None, but the column is not null"),
    ],
    ids=lambda value: shown(value).encode("ascii", "replace").decode(),
)
def test_what_does_not_fit_is_not_sent(ddl, value, place, problem):
    with pytest.raises(BadRecord) as caught:
        JsonCodec(parse_schema(ddl), "words").encode((value,))
    assert caught.value.place == f"words{place}"
    assert problem in caught.value.problem


@pytest.mark.parametrize("record", [["a"], "a", None, ("a", "b"), ()])
def test_a_record_is_a_tuple_of_all_columns(record):
    with pytest.raises(BadRecord, match=r"^record: "):
        encode(parse_schema("a string"), record)


def test_a_time_at_the_end_of_the_calendar_is_refused_where_utc_has_none():
    early = dt.datetime.min.replace(tzinfo=dt.timezone(dt.timedelta(hours=1)))
    with pytest.raises(BadRecord, match="outside the years 1 to 9999 in UTC"):
        encode(parse_schema("a timestamp"), (early,))
    with pytest.raises(BadRecord, match="outside the years 1 to 9999 in UTC"):
        decode(parse_schema("a timestamp"), b'{"a": "0001-01-01T00:00:00+01:00"}')


@pytest.mark.parametrize(
    ("ddl", "body", "place", "problem"),
    [
        ("a int", b"", "", "b'' is not JSON"),
        ("a int", b'{"a": 1', "", "is not JSON"),
        ("a int", b'{"a": "\xff"}', "", "is not JSON: 'utf-8' codec can't decode"),
        ("a int", b'{"a": ' + HUGE + b"}", "", "is not JSON"),
        ("a int", b"[" * 100_000, "", "nested too deeply"),
        ("a decimal(4,2)", b'{"a": 1.0e99999999999999999999}', "", "is not JSON"),
        ("a int", b"[1]", "", '[1] is not a JSON object; write {"column": value}'),
        ("a string", b'{"a": "\\ud800"}', "", "half a surrogate pair"),
        ("a string", b'{"\\ud800": ["x"]}', "", "half a surrogate pair"),
        ("a string", b'{"a": 7}', ".a", "7 (of type int) does not fit string"),
        ("a int", b'{"a": 1.0}', ".a", "does not fit int"),
        ("a int", b'{"a": 2147483648}', ".a", "is out of range for int"),
        ("a boolean", b'{"a": "true"}', ".a", "does not fit boolean"),
        ("a double", b'{"a": "1"}', ".a", "'1' does not fit double"),
        ("a double", b'{"a": true}', ".a", "True does not fit double"),
        ("a double", b'{"a": ' + b"9" * 400 + b"}", ".a", "is out of range for double"),
        ("a float", b'{"a": 1e39}', ".a", "is out of range for float"),
        ("a decimal(4,2)", b'{"a": "x"}', ".a", "'x' does not fit decimal(4,2)"),
        ("a decimal(4,2)", b'{"a": true}', ".a", "True does not fit decimal(4,2)"),
        ("a decimal(4,2)", b'{"a": 1.234}', ".a", "more digits than decimal(4,2)"),
        ("a decimal(4,2)", b'{"a": "1E+999999999"}', ".a", "more digits than decimal(4,2)"),
        ("a date", b'{"a": "31.12.2024"}', ".a", "does not fit date; write it like 2024-12-31"),
        ("a date", b'{"a": 7}', ".a", "7 does not fit date; write it like 2024-12-31"),
        (
            "a timestamp",
            b'{"a": "noon"}',
            ".a",
            "'noon' does not fit timestamp; write it like 2024-12-31T",
        ),
        ("a timestamp", b'{"a": "2024-12-31T12:00"}', ".a", "has no time zone"),
        ("a timestamp_ntz", b'{"a": "2024-12-31T12:00Z"}', ".a", "has a time zone"),
        ("a binary", b'{"a": "?"}', ".a", "'?' does not fit binary; write base64"),
        ("a binary", b'{"a": 7}', ".a", "7 does not fit binary; write base64"),
        ("a array<int>", b'{"a": {}}', ".a", "{} does not fit array"),
        ("a array<int>", b'{"a": [1, "x"]}', ".a[1]", "does not fit int"),
        ("a map<string, int>", b'{"a": []}', ".a", "[] does not fit map"),
        ("a map<string, int>", b'{"a": {"k": "x"}}', ".a['k']", "does not fit int"),
        ("a map<int, int>", b'{"a": {"k": 1}}', ".a.key", "'k' does not fit number"),
        (
            "a map<int, int>",
            b'{"a": {"NaN": 1}}',
            ".a.key",
            "'NaN' (of type str) does not fit int",
        ),
        ("a map<boolean, int>", b'{"a": {"yes": 1}}', ".a.key", "'yes' does not fit boolean"),
        ("a struct<b: int>", b'{"a": [1]}', ".a", "[1] does not fit struct"),
        ("a struct<b: int>", b'{"a": {"b": "x"}}', ".a.b", "does not fit int"),
        ("a int not null", b"{}", ".a", "is missing, but the column is not null"),
    ],
    ids=lambda value: shown(value).encode("ascii", "replace").decode(),
)
def test_what_cannot_be_read_is_refused_with_the_reason(ddl, body, place, problem):
    with pytest.raises(BadRecord) as caught:
        JsonCodec(parse_schema(ddl), "words").decode(body)
    assert caught.value.place == f"words{place}"
    assert problem in caught.value.problem
    assert len(str(caught.value)) < 300


@given(
    SCHEMAS,
    st.binary(max_size=40) | st.text(max_size=40).map(lambda t: json.dumps([t]).encode()),
)
def test_rubbish_raises_nothing_else(schema, body):
    with pytest.raises(BadRecord):
        decode(schema, body)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(st.data())
def test_records_of_any_other_shape_are_read_or_refused(data):
    schema = data.draw(SCHEMAS)
    body = json.dumps({name: data.draw(JSON) for name in schema.names}).encode()
    try:
        record = decode(schema, body)
    except BadRecord:
        return
    assert decode(schema, *encode(schema, record)) == record or "nan" in repr(record)


@pytest.mark.parametrize("depth", [300, 450, 900, 5000, 100_000])
@pytest.mark.parametrize(("opens", "closes"), [(b"[", b"]"), (b'{"a":', b"}")])
def test_what_is_nested_is_read_or_refused_however_deeply(depth, opens, closes):
    """Beside the columns, and with an escape, for which all text is looked at."""
    schema = parse_schema("word string")
    body = b'{"x": ' + opens * depth + b'"\\u00e9"' + closes * depth + b', "word": "a"}'
    try:
        assert decode(schema, body) == ("a",)
    except BadRecord as error:
        assert "nested too deeply" in str(error)  # noqa: PT017 - either may be


@pytest.mark.parametrize(
    ("kind", "spellings"),
    [
        ("double", ["1", "1.0", "1e0", "10e-1"]),
        ("float", ["0", "0.0", "-0.0"]),
        ("double", ['"Infinity"', '"+INF"']),
        ("decimal(6,2)", ["1.5", '"1.50"', "1.500", '"1.5"']),
        ("date", ['"2026-01-31"', '"20260131"']),
        ("timestamp", ['"2026-01-31T12:00:00+00:00"', '"2026-01-31T13:00:00+01:00"']),
        ("timestamp_ntz", ['"2026-01-31T12:00:00"', '"2026-01-31 12:00:00.000"']),
        ("struct<x:double,y:int>", ['{"x": 1, "y": 2}', '{"y": 2, "more": 3, "x": 1.0}']),
        ("array<double>", ["[1]", "[1.0]"]),
    ],
)
def test_equal_values_are_one_key_however_they_are_written(kind, spellings):
    """Other clients write numbers and times as they like; a function sees equal values."""
    assert len(_keys(kind, spellings)) == 1


@pytest.mark.parametrize(
    ("kind", "texts"),
    [("int", ["1", "0", "null"]), ("string", ['"1"', '"1.0"', '""']), ("double", ["1", "1.5"])],
)
def test_different_values_are_different_keys(kind, texts):
    assert len(_keys(kind, texts)) == len(texts)


def _keys(kind, texts):
    codec = JsonCodec(parse_schema(f"key {kind}, n int"), "words")
    keys = {
        codec.key(f'{{"key": {text}, "n": {n}}}'.encode(), ("key",))
        for n, text in enumerate(texts)
    }
    assert None not in keys
    return keys


@pytest.mark.parametrize(
    ("kind", "text"), [("bigint", "1.0"), ("int", "true"), ("string", "1"), ("date", '"x"')]
)
def test_what_is_no_value_of_the_column_is_no_key(kind, text):
    """It cannot be decoded either, so no function ever sees it."""
    codec = JsonCodec(parse_schema(f"key {kind}"), "words")
    body = f'{{"key": {text}}}'.encode()
    assert codec.key(body, ("key",)) is None
    with pytest.raises(BadRecord, match=r"^words\.key"):
        codec.decode(body)

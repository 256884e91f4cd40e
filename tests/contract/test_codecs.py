"""What every codec does, whatever the format of its stream is."""

import json
import math
import pickle
from dataclasses import replace
from datetime import date
from decimal import Decimal
from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from schema_registry import schema_registry
from sojourn.app.codec import codec_of
from sojourn.app.codec.json import encode
from sojourn.app.schema import Schema, parse_schema
from sojourn.app.stream import Avro, Stream
from sojourn.errors import BadRecord
from unit.app.avro_schemas import avro_able, avro_schema
from unit.app.schemas import SCHEMAS, records

pytestmark = pytest.mark.timeout(120)

NUMBERS = count()
# A registry is asked over HTTP for every schema that is drawn.
DRAWN = settings(
    max_examples=50,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
WORDS = parse_schema("word string, n int")


def stream(schema, form=None):
    return Stream(name="words", columns=schema.names, schema=schema, format=form)


class InJson:
    """Messages that any client writes as JSON."""

    def stream(self, schema):
        return stream(schema)

    def without(self, schema, record, column):
        """Return a message of *record* without one of its columns."""
        body, _ = encode(schema, record)
        named = json.loads(body)
        del named[column]
        return json.dumps(named).encode()


class InAvroFile:
    """Avro with the schema of a file, of which every message has all fields."""

    def __init__(self, folder):
        self._folder = folder

    def stream(self, schema):
        file = self._folder / f"{next(NUMBERS)}.avsc"
        file.write_text(json.dumps(avro_schema(schema)))
        return stream(schema, Avro(file))

    without = None


class InAvroRegistry:
    """Avro with the schemas of a registry."""

    def __init__(self, registry):
        self._registry = registry

    def stream(self, schema):
        subject = f"words/{next(NUMBERS)}"
        self._registry.register(subject, avro_schema(schema))
        return stream(schema, Avro(registry=self._registry.url, subject=subject))

    def without(self, schema, record, column):
        kept = [i for i, name in enumerate(schema.names) if name != column]
        fewer = Schema(tuple(schema.fields[i] for i in kept))
        body, _ = codec_of(self.stream(fewer)).encode(tuple(record[i] for i in kept))
        return body


@pytest.fixture(scope="module")
def registry():
    with schema_registry() as running:
        yield running


@pytest.fixture(params=["json", "avro file", "avro registry"])
def form(request, tmp_path):
    match request.param:
        case "json":
            return InJson()
        case "avro file":
            return InAvroFile(tmp_path)
    return InAvroRegistry(request.getfixturevalue("registry"))


@DRAWN
@given(data=st.data())
def test_every_record_comes_back_as_it_went(form, data):
    schema = data.draw(SCHEMAS.map(avro_able))
    record = data.draw(records(schema.fields))
    codec = codec_of(form.stream(schema))
    assert codec.decode(*codec.encode(record)) == record


@DRAWN
@given(data=st.data())
def test_rubbish_is_a_bad_record_and_has_no_key(form, data):
    schema = data.draw(SCHEMAS.map(avro_able))
    body = data.draw(st.binary(max_size=40))
    codec = codec_of(form.stream(schema))
    try:
        record = codec.decode(body)
    except BadRecord as error:
        assert error.place.split(".")[0].split("[")[0] == "words"  # noqa: PT017
        assert len(str(error)) < 1000  # noqa: PT017
    else:  # a few bytes can be a record in Avro
        assert isinstance(codec.key(body, schema.names), str)
        assert codec.decode(*codec.encode(record)) == record or "nan" in repr(record)


@pytest.mark.parametrize("body", [b"", b"\x00", b"\xff" * 40, b'{"word": 7}', b"[1]"])
def test_bad_bytes_name_the_stream(form, body):
    codec = codec_of(form.stream(WORDS))
    with pytest.raises(BadRecord, match=r"^words[.:]"):
        codec.decode(body)


def test_a_missing_column_is_none(form):
    if form.without is None:
        pytest.skip("messages with the schema of a file have all fields")
    codec = codec_of(form.stream(WORDS))
    assert codec.decode(form.without(WORDS, ("a", 1), "n")) == ("a", None)
    assert codec.decode(form.without(WORDS, ("a", 1), "word")) == (None, 1)


def test_a_missing_column_that_is_not_null_is_refused(form):
    if form.without is None:
        pytest.skip("messages with the schema of a file have all fields")
    schema = parse_schema("word string not null, n int")
    codec = codec_of(form.stream(schema))
    with pytest.raises(BadRecord, match=r"^words.*\bword\b"):
        codec.decode(form.without(schema, ("a", 1), "word"))


@pytest.mark.parametrize(
    ("record", "place"),
    [
        (("a", "b"), "words.n"),
        (("a", 2**31), "words.n"),
        (("\ud800", 1), "words.word"),
        (("a",), "words"),
        (["a", 1], "words"),
    ],
)
def test_what_does_not_fit_is_not_written(form, record, place):
    with pytest.raises(BadRecord) as caught:
        codec_of(form.stream(WORDS)).encode(record)
    assert caught.value.place == place


def test_the_key_is_that_of_the_columns_alone(form):
    codec = codec_of(form.stream(WORDS))
    keys = [codec.key(codec.encode(r)[0], ("word",)) for r in [("a", 1), ("a", 2), ("b", 1)]]
    assert keys[0] == keys[1] != keys[2]
    assert None not in keys
    assert codec.key(b"\xff\xff", ("word",)) is None


def test_the_key_is_the_same_in_every_format(form):
    """An operator may read streams of several formats, and has one state for a key."""
    schema = parse_schema("word string, n int, day date, price decimal(6,2), rate double")
    codec, day = codec_of(form.stream(schema)), date(2026, 1, 31)
    body, _ = codec.encode(("ä", 3, day, Decimal("1.5"), math.inf))
    assert codec.key(body, schema.names) == ('["\\u00e4", 3, "2026-01-31", "1.50", "Infinity"]')
    body, _ = codec.encode((None, None, day, None, 0.5))
    assert codec.key(body, ("rate", "word")) == "[0.5, null]"


def test_a_key_has_no_negative_zero(form):
    """It equals zero, and would be another key."""
    codec = codec_of(form.stream(parse_schema("rate double")))
    assert {codec.key(codec.encode((rate,))[0], ("rate",)) for rate in (0.0, -0.0)} == {"[0.0]"}


def test_another_process_makes_the_same_codec_of_the_definition(form):
    given_ = form.stream(parse_schema("word string, photo binary"))
    sent = pickle.loads(pickle.dumps(given_.by("word")))
    other = codec_of(replace(sent, name="others"))
    record = ("a", b"\x00\xff")
    assert other.decode(*codec_of(given_).encode(record)) == record

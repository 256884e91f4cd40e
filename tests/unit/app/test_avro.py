"""Streams in Avro: what an application may say of them, and what their schema must have."""

import datetime as dt
import json
import subprocess
import sys
from io import BytesIO

import fastavro
import pytest

import sojourn as sj
from schema_registry import schema_registry
from sojourn.app.codec import codec_of
from sojourn.app.codec.avro import AvroCodec
from sojourn.app.codec.schema_registry import Registry, outlast
from sojourn.app.schema import parse_schema
from sojourn.app.stream import Stream
from sojourn.errors import BadApplication, BadRecord, BadSchema, EngineError, RegistryAway

pytestmark = pytest.mark.timeout(60)

NOON = dt.datetime(2024, 12, 31, 12, tzinfo=dt.UTC)


def record_of(**fields):
    """Return the schema of a record, with fields by name."""
    named = [{"name": name, "type": kind} for name, kind in fields.items()]
    return {"type": "record", "name": "clicks", "fields": named}


def codec(folder, ddl, schema):
    file = folder / "clicks.avsc"
    file.write_text(schema if isinstance(schema, str) else json.dumps(schema))
    columns = parse_schema(ddl)
    form = sj.Avro(file)
    return codec_of(Stream(name="clicks", columns=columns.names, schema=columns, format=form))


def in_registry(registry, ddl, subject="clicks-value", file=""):
    columns = parse_schema(ddl)
    form = sj.Avro(file, registry=registry.url, subject=subject)
    return codec_of(Stream(name="clicks", columns=columns.names, schema=columns, format=form))


@pytest.fixture(scope="module")
def running():
    with schema_registry() as registry:
        yield registry


@pytest.fixture
def registry(running):
    running.subjects.clear()
    return running


# -- the columns and the schema ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("ddl", "schema", "said"),
    [
        (
            "user string, page string",
            record_of(user="string"),
            "streams.clicks.page: the Avro schema has no field 'page'; add it there, or write",
        ),
        (
            "n int",
            record_of(n="long"),
            "streams.clicks.n: the column is int, but the Avro type is long; it must be int;",
        ),
        (
            "n bigint",
            record_of(n=["null", "int"]),
            "bigint, but the Avro type is int; it must be",
        ),
        ("n string", record_of(n=["int", "string"]), "but the Avro type is union"),
        ("n timestamp", record_of(n="long"), "long timestamp-micros or long timestamp-millis"),
        (
            "n decimal(4,2)",
            record_of(n={"type": "bytes", "logicalType": "decimal", "precision": 9}),
            "the column is decimal(4,2), but the Avro type is bytes decimal(9,0)",
        ),
        ("n array<int>", record_of(n="int"), "it must be array"),
        (
            "n array<int>",
            record_of(n={"type": "array", "items": "long"}),
            "streams.clicks.n[]: the column is int",
        ),
        (
            "n map<int, int>",
            record_of(n={"type": "map", "values": "int"}),
            "it must be a map with keys of type string",
        ),
        (
            "n struct<a: int, b: int>",
            record_of(n={"type": "record", "name": "n", "fields": []}),
            "streams.clicks.n.a: the Avro schema has no field 'a'",
        ),
        ("n struct<a: int>", record_of(n="int"), "it must be record"),
        ("n int", '"int"', "not a record; make it a record with a field for each column"),
        ("n int", "{", "is not a valid Avro schema: JSONDecodeError"),
        ("n int", record_of(n="nosuch"), "is not a valid Avro schema: UnknownType"),
    ],
)
def test_columns_that_do_not_fit_are_refused(tmp_path, ddl, schema, said):
    with pytest.raises(BadSchema) as caught:
        codec(tmp_path, ddl, schema)
    assert said in str(caught.value)


def test_types_with_names_are_found_where_they_are_used_again(tmp_path):
    point = {"type": "record", "name": "p", "fields": [{"name": "x", "type": "int"}]}
    made = codec(
        tmp_path,
        "a struct<x: int>, b array<struct<x: int>>",
        record_of(a=point, b={"type": "array", "items": "p"}),
    )
    record = ((1,), [(2,), (3,)])
    assert made.decode(*made.encode(record)) == record


def test_what_columns_do_not_have_is_read_and_not_shown(tmp_path):
    schema = record_of(
        id={"type": "string", "logicalType": "uuid"},
        word="string",
        at={"type": "long", "logicalType": "timestamp-millis"},
        more={"type": "array", "items": "long"},
    )
    made = codec(tmp_path, "at timestamp, id string", schema)
    body = BytesIO()
    written = {"id": "no uuid", "word": "a", "at": NOON, "more": [1]}
    fastavro.schemaless_writer(
        body, json.loads(json.dumps(schema).replace("uuid", "-")), written
    )
    assert made.decode(body.getvalue()) == (NOON, "no uuid")
    assert made.lacking == ("word", "more")
    with pytest.raises(BadRecord, match="clicks: does not fit its Avro schema"):
        made.encode((NOON, "a"))


def test_binary_columns_are_in_the_body(tmp_path):
    made = codec(tmp_path, "photo binary", record_of(photo="bytes"))
    assert made.encode((b"\x00\xff",)) == (b"\x04\x00\xff", {})


@pytest.mark.parametrize(
    ("ddl", "kind", "value", "said"),
    [
        ("a string", "string", None, "clicks.a: is None, but its Avro type has no null"),
        (
            "a array<int>",
            {"type": "array", "items": "int"},
            [1, None],
            "clicks.a[1]: is None, but its Avro type has no null",
        ),
        (
            "a map<string, int>",
            {"type": "map", "values": "int"},
            {"k": None},
            "clicks.a['k']: is None",
        ),
        (
            "a string",
            {"type": "enum", "name": "e", "symbols": ["up", "down"]},
            "left",
            "clicks.a: 'left' is none of ['up', 'down']",
        ),
        (
            "a binary",
            {"type": "fixed", "name": "f", "size": 2},
            b"123",
            "clicks.a: has 3 bytes, not 2",
        ),
    ],
)
def test_values_that_avro_has_no_place_for_are_not_written(tmp_path, ddl, kind, value, said):
    with pytest.raises(BadRecord) as caught:
        codec(tmp_path, ddl, record_of(a=kind)).encode((value,))
    assert str(caught.value).startswith(said)


def test_enums_and_fixed_types_are_text_and_bytes(tmp_path):
    enum = {"type": "enum", "name": "e", "symbols": ["up", "down"]}
    fixed = {"type": "fixed", "name": "f", "size": 2}
    made = codec(tmp_path, "a string, b binary", record_of(a=enum, b=fixed))
    assert made.decode(*made.encode(("down", b"12"))) == ("down", b"12")


def test_a_list_given_as_a_tuple_is_not_taken_for_the_branch_of_a_union(tmp_path):
    array = ["null", {"type": "array", "items": "string"}]
    made = codec(tmp_path, "a array<string>", record_of(a=array))
    assert made.decode(*made.encode((("null", "b"),))) == (["null", "b"],)


def test_messages_that_are_longer_than_the_schema_says_are_refused(tmp_path):
    made = codec(tmp_path, "n int", record_of(n="int"))
    with pytest.raises(
        BadRecord, match=r"clicks: .* has 1 bytes left over after its Avro schema"
    ):
        made.decode(b"\x02\x02")
    assert made.decode(b"\x02") == (1,)


def test_numbers_that_the_column_has_no_room_for_are_refused(tmp_path):
    made = codec(tmp_path, "n tinyint", record_of(n="int"))
    wide = codec(tmp_path, "n int", record_of(n="int"))
    with pytest.raises(BadRecord, match=r"clicks\.n: 200 is out of range for tinyint"):
        made.decode(*wide.encode((200,)))


# -- the registry ------------------------------------------------------------------------------


def test_messages_begin_with_the_id_of_the_latest_schema(registry):
    registry.register("clicks-value", record_of(n="int", old="string"))
    number = registry.register("clicks-value", record_of(n="int"))
    body, _ = in_registry(registry, "n int").encode((1,))
    assert body == b"\x00" + number.to_bytes(4, "big") + b"\x02"


def test_each_message_is_read_with_the_schema_it_was_written_with(registry):
    old = registry.register("clicks-value", record_of(gone="string", n="int"))
    new = record_of(n="int", page="string")
    new["fields"][1]["default"] = "home"
    registry.register("clicks-value", new)
    made = in_registry(registry, "n int, page string")
    asked = registry.asked
    for n in range(5):
        body = BytesIO()
        fastavro.schemaless_writer(
            body, record_of(gone="string", n="int"), {"gone": "", "n": n}
        )
        assert made.decode(b"\x00" + old.to_bytes(4, "big") + body.getvalue()) == (n, "home")
    assert registry.asked == asked + 1  # it is remembered


def test_a_schema_of_a_file_is_registered_once(registry, tmp_path):
    file = tmp_path / "clicks.avsc"
    file.write_text(json.dumps(record_of(n="int", unique="null")))
    first = in_registry(registry, "n int", file=file)
    again = in_registry(registry, "n int not null", file=file)
    assert first.encode((1,)) == again.encode((1,))
    assert registry.schemas.count(file.read_text()) == 1
    assert first.decode(*again.encode((7,))) == (7,)


def test_a_subject_that_is_not_there_is_named(registry):
    with pytest.raises(BadSchema, match="the schema registry has no subject nosuch; check the"):
        in_registry(registry, "n int", "nosuch")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "does not begin with a zero byte and the id of a schema"),
        (b"\x01\x00\x00\x00\x01\x02", "does not begin with a zero byte"),
        (
            b"\x00\xff\xff\xff\xff\x02",
            "the schema registry has no schema with the id 4294967295",
        ),
    ],
)
def test_messages_without_a_known_schema_are_bad_records(registry, body, said):
    registry.register("clicks-value", record_of(n="int"))
    made = in_registry(registry, "n int")
    with pytest.raises(BadRecord, match=f"clicks: .*{said}"):
        made.decode(body)
    assert made.key(body, ("n",)) is None


def test_an_id_that_the_registry_does_not_know_is_asked_for_once_a_minute(registry):
    """Each record of a stranger would ask it otherwise."""
    registry.register("clicks-value", record_of(n="int"))
    columns, now_s = parse_schema("n int"), 100.0
    form = sj.Avro(registry=registry.url, subject="clicks-value")
    made = AvroCodec(columns, "clicks", form, clock=lambda: now_s)
    asked, number = registry.asked, len(registry.schemas) + 1
    for _ in range(3):
        with pytest.raises(BadRecord, match=f"has no schema with the id {number}"):
            made.decode(b"\x00" + number.to_bytes(4, "big") + b"\x02")
    assert registry.asked == asked + 1
    assert registry.register("clicks-value", record_of(n="int")) == number
    now_s += 60.0
    assert made.decode(b"\x00" + number.to_bytes(4, "big") + b"\x02") == (1,)


def test_ids_that_nobody_knows_do_not_fill_the_memory(registry):
    registry.register("clicks-value", record_of(n="int"))
    form = sj.Avro(registry=registry.url, subject="clicks-value")
    made = AvroCodec(parse_schema("n int"), "clicks", form, most_unknown=3)
    asked = registry.asked
    for number in (1000, 1001, 1002, 1002, 1003, 1000):  # the fourth is one too many
        with pytest.raises(BadRecord):
            made.decode(b"\x00" + number.to_bytes(4, "big") + b"\x02")
    assert registry.asked == asked + 5


@pytest.mark.parametrize("status", [408, 429, 503])
def test_a_registry_that_cannot_answer_now_is_away(registry, status):
    registry.register("clicks-value", record_of(n="int"))
    made = in_registry(registry, "n int")
    registry.status = status
    try:
        with pytest.raises(RegistryAway, match=f"does not answer: status {status}"):
            made.decode(b"\x00\x00\x01\x00\x00\x02")
    finally:
        registry.status = None


def test_it_is_asked_until_it_answers_or_patience_ends():
    told, answers = [], iter([RegistryAway("r", "no", 60.0), RegistryAway("r", "still", 60.0)])

    def ask():
        if (away := next(answers, None)) is not None:
            raise away
        return "schema"

    assert outlast(ask, told.append) == "schema"
    assert [text.partition(": ")[2][:5] for text in told] == ["no; c", "still"]
    answers = iter([RegistryAway("r", "no", 0.0)])
    with pytest.raises(RegistryAway):
        outlast(ask, told.append)


def test_a_schema_that_is_not_avro_is_a_bad_record(registry):
    registry.register("clicks-value", record_of(n="int"))
    number = registry.register("other", {"type": "object"})
    with pytest.raises(BadRecord, match=f"the schema with the id {number} is not valid Avro"):
        in_registry(registry, "n int").decode(b"\x00" + number.to_bytes(4, "big") + b"\x02")


def test_a_registry_that_refuses_or_does_not_answer_is_named_without_its_password(registry):
    host = registry.url.removeprefix("http://")
    with pytest.raises(EngineError, match=f"^the schema registry at {host} refused: incompat"):
        Registry(f"http://user:secret@{host}").register("refused", "{}")
    with pytest.raises(EngineError) as caught:
        Registry("http://user:secret@127.0.0.1:9").latest("clicks")
    assert str(caught.value).startswith("the schema registry at 127.0.0.1:9 does not answer: ")
    assert "secret" not in str(caught.value)
    assert "secret" not in repr(sj.Avro(registry="http://user:secret@host", subject="clicks"))


# -- the application ---------------------------------------------------------------------------


def shop(folder, **fields):
    """Return an application that reads and writes Avro with a schema of *fields*."""
    file = folder / "clicks.avsc"
    file.write_text(json.dumps(record_of(**fields)))
    app = sj.App("shop")
    clicks = app.source("clicks", schema="user string", format=sj.Avro(file))

    @app.operator(reads=clicks.by("user"), emits="user string", format=sj.Avro(file))
    def visits(user):
        yield (user,)

    app.sink(visits)
    return app, clicks


def test_an_application_reads_and_writes_avro(tmp_path):
    app, _ = shop(tmp_path, user="string")
    app.check()
    assert {stream.format.file for stream in app.streams.values()} == {
        str(tmp_path / "clicks.avsc")
    }


def test_columns_are_checked_with_the_application_and_not_for_a_plan(tmp_path):
    app, _ = shop(tmp_path, other="string")
    measured = {"visits": sj.Hints(service_s=0.001)}
    assert app.topology({"clicks": 1}, measured=measured).rates == {"visits": 1}
    with pytest.raises(
        BadSchema, match=r"^streams\.clicks\.user: the Avro schema has no field"
    ):
        app.check()


def test_a_stream_that_is_written_lacks_no_field_that_is_required(tmp_path):
    app, _ = shop(tmp_path, user="string", page="string", n=["null", "int"])
    with pytest.raises(
        BadApplication,
        match=r"^streams\.visits: its Avro schema requires page, which no column is; add the",
    ):
        app.check()


def test_a_file_that_is_not_there_is_named(tmp_path):
    app, _ = shop(tmp_path, user="string")
    (tmp_path / "clicks.avsc").unlink()
    with pytest.raises(
        BadSchema, match=r"^streams\.clicks: the Avro schema .*clicks\.avsc cannot"
    ):
        app.check()


def test_relative_files_are_in_the_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert sj.Avro("clicks.avsc") == sj.Avro(tmp_path / "clicks.avsc")


def test_spark_sql_operators_refuse_avro(tmp_path):
    app, clicks = shop(tmp_path, user="string")
    said = r"^operators\.{}\.reads: stream clicks is in Avro, and Spark SQL operators read JSON"
    with pytest.raises(BadApplication, match=said.format("n")):
        app.project("n", reads=clicks, columns={"n": "length(user)"})
    with pytest.raises(BadApplication, match=said.format("m")):
        app.aggregate("m", reads=clicks, by="user", columns={"n": "count(*)"})


def test_a_declared_stream_may_be_one_of_several_in_avro(tmp_path):
    app, clicks = shop(tmp_path, user="string")
    good = app.stream("good", schema="user string", format=clicks.format)

    @app.operator(reads=clicks, emits={"good": good, "bad": "user string"})
    def sort(user):
        yield "good", (user,)

    app.check()
    assert [stream.format for stream in sort.emits] == [clicks.format, None]


def some(user):
    yield "a", (user,)


def none(user):
    del user


def test_a_format_has_to_be_that_of_one_new_stream(tmp_path):
    app, clicks = shop(tmp_path, user="string")
    for emits, function in (({"a": "user string"}, some), (None, none)):
        with pytest.raises(BadApplication, match=r"give it to app\.stream instead"):
            app.operator(reads=clicks, emits=emits, format=clicks.format)(function)
    with pytest.raises(BadApplication, match=r"^sources\.a\.format: 'avro' is not a format;"):
        app.source("a", schema="user string", format="avro")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "Avro has no schema; write Avro"),
        ({"registry": "http://host"}, "Avro has a registry, but no subject; give both"),
        ({"file": "a", "subject": "a"}, "Avro has a subject, but no registry; give both"),
        ({"file": "a", "patience_s": -1}, "a patience of -1 s is negative; write patience_s=0"),
        ({"registry": "host:8081", "subject": "a"}, "'host:8081' is not the address of a"),
    ],
)
def test_a_format_says_where_its_schema_is(given, said):
    with pytest.raises(BadApplication, match=f"^format: {said}"):
        sj.Avro(**given)


@pytest.mark.parametrize(
    ("module", "said"),
    [
        ("fastavro", "the Avro stream clicks needs fastavro, which is not installed"),
        ("certifi", "a schema registry needs certifi, which is not installed"),
    ],
)
def test_what_is_not_installed_is_named_with_what_to_install(module, said):
    """Nothing is needed to define the application."""
    program = f"""
import sys
sys.modules[{module!r}] = None
import sojourn as sj
from sojourn.app.codec import codec_of
form = sj.Avro(registry="http://127.0.0.1:9", subject="clicks")
clicks = sj.App("shop").source("clicks", schema="user string", format=form)
try:
    codec_of(clicks)
except sj.SojournError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, encoding="utf-8", check=True
    )
    assert done.stdout.startswith(said)
    assert done.stdout.endswith("install sojourn[avro]\n")

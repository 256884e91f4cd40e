"""Operators that Spark runs itself, on a real broker: what they write, and what they refuse."""

import json
import time
from decimal import Decimal
from hashlib import sha256
from itertools import islice

import pytest
from confluent_kafka import Consumer, Producer

from sojourn.app.application import App
from sojourn.app.codec.json import decode, encode
from sojourn.app.schema import parse_schema
from sojourn.errors import BadApplication, BadSchema
from sojourn.spark.driver.jvm.session import end_session, new_session
from sojourn.spark.driver.kafka.cluster import Cluster
from sojourn.spark.driver.layout import Layout
from sojourn.spark.driver.native.frame import Address
from sojourn.spark.driver.native.headers import executor_environment, install_key
from sojourn.spark.driver.native.query import NativeQuery, misfits_frame, native_frame
from sojourn.spark.driver.native.schema import native_schema
from sojourn.spark.driver.query.real_time import start_real_time
from sojourn.spark.wire.repetitions import Input
from sojourn.spark.wire.signed_inputs import SignedInputs

pytestmark = pytest.mark.spark
DEADLINE_S = 240
BORN_MS = int(time.time() * 1000)  # Kafka would soon delete records of long ago
BOUGHT = parse_schema("item string not null, price decimal(8,2), at timestamp, photo binary")


@pytest.fixture(scope="module")
def spark(jars):
    session = new_session("natives", jars=jars, slots=6)
    yield session
    end_session(session)


@pytest.fixture
def started(broker, spark, tmp_path):
    """Start natives by their operator, reading and writing topics called after the streams.

    Or, of an aggregation, the query of its *misfits*.
    """
    queries, made = [], set()

    def start(operator, *, misfits=False, states=1, **settings):
        address = Address(
            writes=operator.name, dead_letters=f"{operator.name}.dead", **settings
        )
        native = NativeQuery(
            operator=operator,
            reads=operator.reads[0].name,
            address=address,
            kafka=Cluster(broker.bootstrap_servers).for_spark,
            partitions=states,
        )
        for topic in (address.writes, address.dead_letters):
            if topic not in made:
                broker.create_topics({topic: 1})
                made.add(topic)
        frame = misfits_frame if misfits else native_frame
        name = "misfits" if misfits else operator.name
        queries.append(
            start_real_time(
                frame(spark, native),
                name=name,
                kafka=native.kafka,
                checkpoint=tmp_path / name,
                batch_s=5,
            )
        )
        return queries[-1]

    yield start
    for query in queries:
        query.stop()


def application(stream, schema=BOUGHT):
    app = App("shop")
    return app, app.source(stream, schema=schema)


def produce(broker, topic, *records):
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for body, headers in records:
        producer.produce(topic, body, headers=headers, timestamp=BORN_MS)
    producer.flush()


def consumed(broker, topic, number, query):
    """Return the first *number* messages of a topic: key, payload and headers."""
    found = []
    for message in messages(broker, topic, query):
        found.append(message)
        if len(found) == number:
            return found
    return pytest.fail(f"{topic} has only {found}")


def messages(broker, topic, query):
    """Yield key, payload and headers of what comes."""
    for message in arriving(broker, topic, query):
        yield message.key(), message.value(), dict(message.headers() or [])


def arriving(broker, topic, query):
    """Yield what comes, for as long as the query runs, up to the deadline."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": topic,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": "false",
        }
    )
    consumer.subscribe([topic])
    until_s = time.monotonic() + DEADLINE_S
    try:
        while query.exception() is None and time.monotonic() < until_s:
            message = consumer.poll(0.2)
            if message is not None and message.error() is None:
                yield message
    finally:
        consumer.close()
    assert query.exception() is None


def stop_committed(query):
    """Stop a query when a batch of it is committed."""
    until_s = time.monotonic() + DEADLINE_S
    while not query.recentProgress and time.monotonic() < until_s:
        time.sleep(0.1)
    query.stop()


def bought(item, price, at="2024-12-31T23:59:59.123456+00:00", photo=None, headers=()):
    blobs = [("sojourn-column-photo", photo)] if photo is not None else []
    body = {"item": item, "price": price, "at": at}
    return json.dumps(body).encode(), [*headers, *blobs]


def test_a_projection_makes_one_record_of_each_and_passes_its_lineage_on(broker, started):
    app, source = application("bought")
    broker.create_topics({"bought": 1})
    columns = {
        "item": "upper(item)",
        "cost": "price * 2",
        "day": "date(at)",
        "again": "cost + 1",
        "at": "at",
        "photo": "photo",
    }
    query = started(app.project("priced", reads=source, columns=columns), mark="m")
    told = [
        ("sojourn-id", b"other/1/2.split.0"),
        ("sojourn-root", b"other/1/2"),
        ("sojourn-birth", b"1700000000.5"),
        ("sojourn-written", b"1700000001.5"),
        ("sojourn-trace", b"7"),
    ]
    produce(
        broker,
        "bought",
        bought("tea", "2.50", photo=b"\xff\x00"),
        bought("jam", None, headers=told),
    )
    schema = parse_schema(
        "item string, cost decimal(19,2), day date, again decimal(20,2), at timestamp, "
        "photo binary"
    )
    (key, body, tea), (_, jam_body, jam) = consumed(broker, "priced", 2, query)
    assert key is None
    blobs = {"photo": tea["sojourn-column-photo"]}
    item, cost, day, again, at, photo = decode(schema, body, blobs)
    assert (item, cost, again, photo) == ("TEA", Decimal("5.00"), Decimal("6.00"), b"\xff\x00")
    assert (day.isoformat(), at.isoformat()) == (
        "2024-12-31",
        "2024-12-31T23:59:59.123456+00:00",
    )
    assert tea["sojourn-id"] == b"bought@m/0/0.priced.0"
    assert tea["sojourn-root"] == b"bought@m/0/0"
    assert float(tea["sojourn-birth"]) == BORN_MS / 1000
    assert "sojourn-trace" not in tea
    assert json.loads(jam_body)["cost"] is None
    assert {name: jam[name] for name in jam if name != "sojourn-written"} == {
        "sojourn-id": b"other/1/2.split.0.priced.0",
        "sojourn-root": b"other/1/2",
        "sojourn-birth": b"1700000000.5",
        "sojourn-trace": b"7",
    }
    written_s = [float(headers["sojourn-written"]) for headers in (tea, jam)]
    assert BORN_MS / 1000 < written_s[0] < written_s[1]  # each has its own


def test_a_projection_says_from_which_offset_a_record_comes_as_python_would(
    broker, spark, started
):
    """It passes on what the part before it has said, unless the record is retried."""
    key, name = bytes(range(32)), "posted"
    signed = SignedInputs(key, frozenset([f"{name}@m", "lines@m"]))
    install_key(spark, executor_environment(key))
    app, source = application(name)
    broker.create_topics({name: 3})
    query = started(
        app.project("stamped", reads=source, columns={"item": "item"}), mark="m", partitions=2
    )
    first = Input(writer="split", topic="lines@m", partition=0, offset=7, floor=5)
    retried = ("sojourn-for", b"stamped.dead/stamped")
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for headers in (signed.header(first), [*signed.header(first), retried]):
        producer.produce(name, bought("tea", "1.00")[0], partition=2, headers=headers)
    producer.flush()
    found = islice(arriving(broker, "stamped", query), 2)
    inputs = [
        signed.inputs([{"key": name, "value": value} for name, value in message.headers()])
        for message in found
    ]
    own = [
        Input(writer="stamped", topic=f"{name}@m", partition=2, offset=offset, floor=0)
        for offset in (0, 1)
    ]
    assert inputs == [(first, own[0]), (own[1],)]


def test_what_does_not_fit_is_a_dead_letter_and_the_rest_goes_on(broker, started):
    app, source = application("torn")
    broker.create_topics({"torn": 1})
    query = started(app.project("mended", reads=source, columns={"item": "item"}))
    bad = [
        b"a stranger wrote this",
        b'{"price": 1}',
        b'{"item": "a", "price": []}',
        b"\xff",
    ]
    produce(broker, "torn", (None, []), (b"", []))  # of what is gone, as in compacted topics
    produce(broker, "torn", *((body, [("sojourn-column-photo", b"p")]) for body in bad))
    produce(broker, "torn", bought("tea", 1))
    dead = consumed(broker, "mended.dead", 4, query)
    assert [body for _, body, _ in dead] == bad
    reasons = [headers["sojourn-error"].decode() for _, _, headers in dead]
    assert all(reason.startswith("mended: torn: ") for reason in reasons)
    for reason, said in zip(
        reasons, ["not JSON", "a null", "not JSON that fits", "UTF-8"], strict=True
    ):
        assert said in reason
    assert dead[0][2]["sojourn-id"] == b"torn/0/2.mended.dead"
    assert dead[0][2]["sojourn-column-photo"] == b"p"
    ((_, body, _),) = consumed(broker, "mended", 1, query)
    assert json.loads(body) == {"item": "tea"}


def test_whatever_strangers_write_is_passed_on_or_a_dead_letter(broker, started):
    app, source = application("strange", "item string")
    broker.create_topics({"strange": 1})
    query = started(
        app.project("doubled", reads=source, columns={"item": "concat(item, item)"})
    )
    odd = [("nan", "9" * 25), ("inf", "-1"), ("1e400", "x"), ("-1", ""), ("1e18", "9" * 5000)]
    sound = b'{"item":"a"}'
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for birth, trace in odd:
        told = {"sojourn-id": "i" * 2000, "sojourn-root": "root"}
        told |= {"sojourn-birth": birth, "sojourn-trace": trace}
        producer.produce("strange", sound, key=b"K", headers=told, timestamp=BORN_MS)
    producer.produce("strange", sound, timestamp=1 << 50)  # the year 37648
    half = json.dumps({"item": "x" * 600_000}).encode()
    letters = [b"[" * 5000, b'{"item": "\\ud800"' + b"[" * 5000, half]
    for value in (*letters, None):
        producer.produce("strange", value, key=b"K", headers={"other": b"1"})
    for name in ("shop.dead-letters/other", "doubled.dead/doubled"):
        producer.produce("strange", b'{"item":"again"}', headers={"sojourn-for": name})
    producer.flush()

    *found, stray, again = consumed(broker, "doubled", len(odd) + 2, query)
    for key, value, headers in found:
        assert (key, json.loads(value)) == (b"K", {"item": "aa"})
        assert headers["sojourn-id"] == sha256(b"i" * 2000).hexdigest().encode() + b".doubled.0"
        assert float(headers["sojourn-birth"]) == BORN_MS / 1000
        assert headers["sojourn-trace"] == b"0"
    assert BORN_MS / 1000 <= float(stray[2]["sojourn-birth"]) < 4e9
    assert json.loads(again[1]) == {"item": "againagain"}  # and not the one for another
    dead = consumed(broker, "doubled.dead", len(letters), query)
    assert [value for _, value, _ in dead[:2]] == letters[:2]
    for place, (key, _, headers) in enumerate(dead):
        assert (key, headers["other"]) == (b"K", b"1")
        assert headers["sojourn-operator"] == b"doubled"
        assert headers["sojourn-stream"] == b"strange"
        position = f"strange/0/{place + len(odd) + 1}".encode()
        assert headers["sojourn-record"] == headers["sojourn-position"] == position
        assert headers["sojourn-id"] == position + b".doubled.dead"
    assert b"max.request.size" in dead[2][2]["sojourn-error"]
    assert dead[2][1] == half


def test_an_aggregation_emits_every_update_and_has_its_state_when_it_comes_back(
    broker, started
):
    app, source = application("sold")
    broker.create_topics({"sold": 2})
    columns = {"n": "count(*)", "total": "sum(price)", "last": "max(item)"}
    per_item = app.aggregate("per_item", reads=source, by="item", columns=columns)
    query = started(per_item, states=2)
    produce(broker, "sold", bought("tea", 1), (b"{", []), bought("tea", 2), bought("jam", 5))
    found = consumed(broker, "per_item", 3, query)
    updates = [json.loads(body) for _, body, _ in found]
    assert {update["item"] for update in updates} == {"tea", "jam"}
    assert max(update["n"] for update in updates) == 2
    assert [u["total"] for u in updates if u["item"] == "jam"] == ["5.00"]
    assert {key for key, _, _ in found} == {b'{"item":"tea"}', b'{"item":"jam"}'}
    assert all(list(headers) == ["sojourn-written"] for _, _, headers in found)
    stop_committed(query)
    # more than there are slots, but the number of partitions is settled
    query = started(per_item, states=50)
    produce(broker, "sold", bought("jam", "0.50"))
    totals = (json.loads(body)["total"] for _, body, _ in messages(broker, "per_item", query))
    assert "5.50" in totals


def test_each_of_many_records_that_do_not_fit_an_aggregation_is_a_dead_letter(broker, started):
    """In the aggregation they would be put together on their way to the state."""
    app, source = application("unsold")
    broker.create_topics({"unsold": 1})
    torn = [b"{%d" % number for number in range(50)]
    produce(broker, "unsold", *((body, []) for body in torn), bought("tea", 1))
    kept = app.aggregate("kept", reads=source, by="item", columns={"n": "count(*)"})
    dead = consumed(broker, "kept.dead", len(torn), started(kept, misfits=True))
    assert [body for _, body, _ in dead] == torn
    assert dead[0][2]["sojourn-id"] == b"unsold/0/0.kept.dead"
    assert b"is not JSON" in dead[0][2]["sojourn-error"]


def test_an_aggregation_goes_on_with_a_state_that_has_a_group_of_misfits(
    broker, started, monkeypatch
):
    """Those of earlier versions do."""
    app, source = application("older")
    broker.create_topics({"older": 1})
    counted = app.aggregate("counted", reads=source, by="item", columns={"n": "count(*)"})
    produce(broker, "older", (b"{", []), bought("tea", 1))
    with monkeypatch.context() as before:
        before.setattr("sojourn.spark.driver.native.query.fitting", lambda frame: frame)
        query = started(counted)
        consumed(broker, "counted", 1, query)
        stop_committed(query)
    query = started(counted)
    produce(broker, "older", (b"{", []), bought("tea", 1))
    *_, (_, last, _) = consumed(broker, "counted", 2, query)
    assert json.loads(last) == {"item": "tea", "n": 2}


def test_a_native_reads_what_a_native_made_of_types_that_only_spark_knows(
    broker, spark, started
):
    app, source = application("raw", "word string, n map<int, binary>")
    broker.create_topics({"raw": 1})
    first = app.project(
        "first",
        reads=source,
        columns={
            "word": "word",
            "n": "map_filter(n, (k, v) -> k > 1)",
            "all": "named_struct('k', n)",
        },
        emits="word string, n map<int, binary>, all struct<k: map<int, binary>>",
    )
    second = app.project("second", reads=first, columns={"size": "size(n)", "all": "all.k"})
    started(first)
    query = started(second)
    body, _ = encode(source.schema, ("tea", {1: b"\xff", 2: None, 3: b"c"}))
    produce(broker, "raw", (body, []))
    ((_, body, headers),) = consumed(broker, "second", 1, query)
    assert decode(native_schema(spark, second), body) == (
        2,
        {1: b"\xff", 2: None, 3: b"c"},
    )
    assert headers["sojourn-id"] == b"raw/0/0.first.0.second.0"


def test_slots_are_held_for_the_input_the_state_and_what_does_not_fit():
    app, source = application("held")
    app.project("kept", reads=source, columns={"item": "item"})
    app.aggregate("counted", reads=source, by="item", columns={"n": "count(*)"})
    held = Layout(app, "").slots({"shop.held": 3})
    assert held == {"kept": 3, "counted": 4, "misfits of counted": 3}


@pytest.mark.parametrize(
    ("columns", "place", "problem"),
    [
        ({"a": "item", "b": "colour"}, "columns.b", "colour"),
        ({"a": "upper(", "b": "item"}, "columns.a", "Syntax error"),
        ({"a": "price", "b": "array(a) + 1"}, "columns.b", "DATATYPE_MISMATCH"),
        ({"a": "count(*)"}, "columns.a", "GROUP"),
        ({"a": "explode(array(1, 2))"}, "columns.a", "GENERATOR"),
        ({"a": "row_number() over (order by price)"}, "columns.a", "Window function"),
        ({"a": "item", "b": "null"}, "columns.b", "void is not supported"),
        (
            {"a": "named_struct('x', interval 1 day)"},
            "columns.a.x",
            "interval day is not supported",
        ),
    ],
)
def test_a_bad_projection_is_refused_before_anything_starts(spark, columns, place, problem):
    app, source = application("things")
    operator = app.project("made", reads=source, columns=columns)
    with pytest.raises(BadApplication, match=problem) as refused:
        native_schema(spark, operator)
    assert refused.value.place == f"operators.made.{place}"
    assert "\n" not in str(refused.value)


def test_a_bad_aggregation_is_refused_before_anything_starts(spark):
    app, source = application("things")
    columns = {"n": "count(*)", "items": "count(distinct item)"}
    operator = app.aggregate("made", reads=source, by="item", columns=columns)
    with pytest.raises(BadApplication, match=r"made\.columns\.items: .*[Dd]istinct"):
        native_schema(spark, operator)
    operator = app.aggregate("other", reads=source, by="item", columns={"n": "price"})
    with pytest.raises(BadApplication, match=r"other\.columns\.n: .*price"):
        native_schema(spark, operator)


def test_types_that_are_promised_must_be_those_that_are_made(spark):
    app, source = application("things")
    columns = {"n": "count(*)"}
    kept = app.aggregate(
        "kept",
        reads=source,
        by="item",
        columns={**columns, "all": "named_struct('item', max(item))"},
        emits="item string, n bigint, all struct<item: string not null>",
    )
    assert native_schema(spark, kept) == kept.stream.schema
    broken = app.aggregate(
        "broken", reads=source, by="item", columns=columns, emits="item string, n int"
    )
    with pytest.raises(BadSchema, match=r"'n' is bigint, but emits= says int; write bigint"):
        native_schema(spark, broken)


def test_types_that_nobody_knows_are_asked_for(spark):
    app, source = application("things")
    first = app.project("first", reads=source, columns={"item": "item"})
    second = app.project("second", reads=first, columns={"item": "item"})
    with pytest.raises(BadApplication, match="schema of the stream first is not known"):
        native_schema(spark, second)

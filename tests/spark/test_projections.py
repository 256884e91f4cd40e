"""Projections that run in the query of a part, compared with queries of their own."""

import json
import time
from datetime import UTC, datetime

import pytest
from confluent_kafka import Consumer, Producer

import sojourn as sj
from sojourn.decide.plan import Plan
from sojourn.errors import BadApplication, BadInput
from sojourn.spark.driver.jvm.session import end_session, new_session
from sojourn.spark.driver.kafka.cluster import Cluster
from sojourn.spark.driver.kafka.dead_letters import DeadLetters
from sojourn.spark.driver.kafka.retry import retry_letters
from sojourn.spark.driver.layout import Layout
from sojourn.spark.driver.native.frame import Address, own_session
from sojourn.spark.driver.native.query import project_read, project_written
from sojourn.spark.driver.query.real_time import start_real_time
from sojourn.spark.driver.settings import SparkSettings
from sojourn.spark.driver.spark_engine import SparkEngine
from sojourn.spark.stage import Stage

pytestmark = pytest.mark.spark
DEADLINE_S = 180
ORDERS = 40
TORN = b'{"item": null, "number": 3}'


class Running:
    """An application that runs on Spark, and what it writes."""

    def __init__(self, name, servers, state):
        from spark import shelf  # noqa: PLC0415 - hosts import it by this name

        self.app, self.servers = getattr(shelf, name), servers
        settings = SparkSettings(servers=servers, batch_s=5.0, partitions=2, state=state)
        self.engine = SparkEngine(self.app, f"spark.shelf:{name}", settings)
        self.clients = {"bootstrap.servers": servers}
        self.letters = DeadLetters(self.app.name, self.clients)

    def start(self):
        self.engine.start(
            self.app.topology({"orders": 10}), Plan.here(dict.fromkeys(self.app.operators, 1))
        )

    def order(self):
        """Send orders, and one each that no operator can do."""
        producer = Producer(self.clients)
        topic, stone = f"{self.app.name}.orders", {"item": "Stone", "number": 1}
        last = len(producer.list_topics(topic, timeout=30).topics[topic].partitions) - 1
        for number in range(ORDERS):
            body = json.dumps({"item": f"Tea{number}", "number": number}).encode()
            photo = {"sojourn-column-photo": bytes([number, 255])} if number % 2 else {}
            headers = {**photo, "theirs": b"1"}
            producer.produce(topic, body, b"key", min(number % 2, last), headers=headers)
        producer.produce(topic, TORN, b"K", 0, headers={"theirs": b"2"})
        for item in (stone, {"item": "large", "number": 1}):
            headers = {"sojourn-column-photo": b"p"}
            producer.produce(topic, json.dumps(item).encode(), b"K", last, headers=headers)
        producer.flush()

    def consumed(self, stream, number):
        """Return the messages of a stream, once there are so many: key, payload, headers."""
        group = {"group.id": f"{stream} {time.time()}", "auto.offset.reset": "earliest"}
        consumer = Consumer(self.clients | group)
        consumer.subscribe([f"{self.app.name}.{stream}"])
        found, until_s = [], time.monotonic() + DEADLINE_S
        while len(found) < number and time.monotonic() < until_s:
            message = consumer.poll(0.2)
            if message is not None and message.error() is None:
                found.append((message.key(), message.value(), dict(message.headers() or [])))
        consumer.close()
        return found

    def dead(self, number):
        """Return the letters by operator, once there are so many."""
        until_s = time.monotonic() + DEADLINE_S
        while len(found := self.letters.found()) < number:
            assert time.monotonic() < until_s, found
            time.sleep(0.2)
        return {letter.operator: letter for letter in found}


def told(messages):
    """Return what records say, whoever has made them: key, payload, binary columns."""
    blobs = ("sojourn-column-image", "sojourn-column-picture")
    return sorted(
        (key, value, *(headers.get(name) for name in blobs)) for key, value, headers in messages
    )


@pytest.fixture(scope="module")
def unfused(servers):
    """What comes of orders where each operator is a query of its own."""
    running = Running("durable", servers, None)
    with running.engine:
        running.start()
        running.order()
        found = {name: told(running.consumed(name, n)) for name, n in SINKS.items()}
        return found, running.dead(3)


SINKS = {"public": ORDERS, "check": ORDERS + 1, "store": ORDERS + 1}


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_results_are_those_of_queries_of_their_own_without_topics_between(
    servers, unfused, tmp_path
):
    expected, letters = unfused
    running = Running("in_memory", servers, tmp_path / "state")
    layout = Layout(running.app, "")
    assert (layout.queries, layout.natives) == (["check"], {})
    assert "shelf-in_memory.clean" not in layout.topics
    with running.engine as engine:
        running.start()
        (part,) = engine.health().parts
        assert part.projections == ("clean", "public")
        running.order()
        found = {name: running.consumed(name, n) for name, n in SINKS.items()}
        assert {name: told(messages) for name, messages in found.items()} == expected
        once = running.consumed("once", ORDERS)
        assert told(once) == expected["public"]
        for _, _, headers in (*found["public"], *once):
            root = headers["sojourn-root"].decode()
            assert headers["sojourn-id"].decode() == f"{root}.check.0.public.0"
            assert headers["sojourn-input"].decode().startswith(f"{root} ")
            assert headers["sojourn-birth"]
        dead = running.dead(3)
        for operator, letter in dead.items():
            was = letters[operator]
            assert (letter.value, letter.key, letter.error) == (was.value, was.key, was.error)
            assert (letter.stream, letter.tries) == (was.stream, was.tries)
        assert dead["clean"].value == TORN
        assert dead["clean"].came_from == "shelf-in_memory.orders/0/20"
        assert dict(dead["clean"].headers)["theirs"] == b"2"
        assert [dead[name].inner for name in ("clean", "check", "public")] == [0, 1, 1]
        assert json.loads(dead["check"].value) == {"item": "stone", "twice": 2}
        # put back in, they are the same records, and fail for the same reasons
        assert all(why == "" for _, why in retry_letters(running.letters, dead.values()))
        again = running.dead(3)
        for operator, letter in again.items():
            assert letter.position != dead[operator].position
            assert (letter.record, letter.value) == (
                dead[operator].record,
                dead[operator].value,
            )
        pulls = measured(engine, ORDERS + 3)
        assert served(pulls, "clean") == ORDERS + 4  # one came again
        assert served(pulls, "public") >= ORDERS
        assert sum(pull.roots.completed for pull in pulls) >= ORDERS + 2
        assert [o.backlog for o in pulls[-1].operators] == [0] * 4
        # nothing came twice, and nothing that is not for a sink came there
        assert told(running.consumed("once", ORDERS)) == expected["public"]
        engine.drain()
    with running.engine as engine:
        running.start()  # goes on, and begins nothing again
        running.order()
        messages = running.consumed("once", 2 * ORDERS)
        assert len({headers["sojourn-id"] for _, _, headers in messages}) == 2 * ORDERS


def measured(engine, roots):
    """Return what was counted until so many records have entered, and all are done."""
    pulls, until_s = [], time.monotonic() + DEADLINE_S
    while sum(pull.roots.entered for pull in pulls) < roots or pulls[-1].operators[1].backlog:
        assert time.monotonic() < until_s
        pulls.append(engine.observe(engine.now_s + 1.0))
    return pulls


def served(pulls, name):
    return sum(
        processor.served
        for pull in pulls
        for operator in pull.operators
        if operator.name == name
        for processor in operator.processors
    )


# -- the plan alone ---------------------------------------------------------------------------

HEADERS = "array<struct<key: string, value: binary>>"
KAFKA = (
    f"key binary, value binary, headers {HEADERS}, topic string, partition int, offset bigint, "
    "timestamp timestamp"
)
OUTPUT = f"topic string, partition int, key binary, value binary, headers {HEADERS}"


@pytest.fixture(scope="module")
def spark(jars):
    session = new_session("projections", jars=jars, slots=4)
    yield session
    end_session(session)


def projections():
    """Return one projection each of two streams; the first raises at what is no number."""
    app = sj.App("shop")
    orders = app.source("orders", schema="n string, photo binary")
    tips = app.source("tips", schema="n int")
    number = {"number": "cast(n as int)", "image": "photo"}
    return (
        app.project("clean", reads=orders, columns=number),
        app.project("more", reads=tips, columns={"n": "n + 1"}),
    )


def test_rows_that_are_not_for_a_projection_pass_as_they_are(spark):
    clean, more = projections()
    theirs, photo = ("theirs", b"1"), ("sojourn-column-photo", b"p")
    word, number = b'{"n": "word"}', b'{"n": "7"}'
    came = [
        ("orders", number, None),
        ("orders", number, [theirs, photo, ("sojourn-id", b"x")]),
        ("orders", number, [("sojourn-for", b"dead/clean")]),
        ("orders", word, [("sojourn-for", b"dead/other")]),
        ("orders", b"torn", [theirs, photo]),
        ("orders", None, None),
        ("tips", b'{"n": 1}', None),
        ("tips", word, [photo]),
        ("others", word, [photo]),
    ]
    at = datetime(2026, 1, 1, tzinfo=UTC)
    rows = [(b"k", v, h, topic, 1, n, at) for n, (topic, v, h) in enumerate(came)]
    frame = own_session(spark).createDataFrame(rows, KAFKA)
    made = project_read(frame, {"orders": clean, "tips": more}, "dead").collect()
    assert [(row.key, row.topic, row.partition, row.offset) for row in made] == [
        (b"k", topic, 1, number) for number, (topic, _, _) in enumerate(came)
    ]
    assert {row.timestamp for row in made} == {frame.first().timestamp}
    seven, image = b'{"number":7}', ("sojourn-column-image", b"p")
    assert [(row.value, row.headers and [tuple(h) for h in row.headers]) for row in made] == [
        (seven, []),
        (seven, [theirs, ("sojourn-id", b"x"), image]),
        (seven, [("sojourn-for", b"dead/clean")]),
        *[(value, headers) for _, value, headers in came[3:6]],
        (b'{"n":2}', []),
        *[(value, headers) for _, value, headers in came[7:]],
    ]
    refused = {row.offset: row.error for row in made if row.error is not None}
    assert list(refused) == [4, 7]  # one without a value passes
    assert refused[4].startswith("clean: orders: is not JSON")
    assert refused[7].startswith("more: tips: is not JSON")


def test_what_leaves_is_projected_for_its_topic_and_stays_what_it_is_beside_that(spark):
    clean, _ = projections()
    told = [
        ("sojourn-id", b"lines/0/7.check.0"),
        ("sojourn-root", b"lines/0/7"),
        ("sojourn-birth", b"1700000000.5"),
        ("sojourn-trace", b"3"),
        ("sojourn-input", b"lines/0/7 5"),
        ("sojourn-column-photo", b"p"),
    ]
    rows = [
        ("public", 2, b"k", b'{"n": "7"}', told),
        ("check", None, b"k", b'{"n": "word"}', told),
        ("public", 2, b"k", b"torn", told),
    ]
    frame = own_session(spark).createDataFrame(rows, OUTPUT)
    letters = Address(writes="", dead_letters="dead", inner=True)
    first, same, letter = project_written(frame, {"public": clean}, letters).collect()
    assert (first.topic, first.partition, first.key) == ("public", 2, b"k")
    assert first.value == b'{"number":7}'
    headers = {header.key: header.value for header in first.headers}
    assert float(headers.pop("sojourn-written")) > 1_700_000_000
    assert headers == dict(told[1:5]) | {
        "sojourn-id": b"lines/0/7.check.0.clean.0",
        "sojourn-column-image": b"p",
    }
    assert (same.topic, same.partition, same.value) == ("check", None, b'{"n": "word"}')
    assert [tuple(header) for header in same.headers] == told
    assert (letter.topic, letter.partition, letter.value) == ("dead", None, b"torn")
    headers = {header.key: header.value for header in letter.headers}
    assert headers["sojourn-id"] == b"lines/0/7.check.0.clean.dead"
    assert (headers["sojourn-operator"], headers["sojourn-stream"]) == (b"clean", b"orders")
    assert (headers["sojourn-input"], headers["sojourn-column-photo"]) == (b"lines/0/7 5", b"p")
    assert "sojourn-position" not in headers


def test_a_stage_has_the_projections_next_to_its_functions(spark, servers, tmp_path):
    stage = Stage("spark.shelf:alone", state=tmp_path / "state", batch_s=5.0)
    session = own_session(spark)
    kafka = {"kafka.bootstrap.servers": servers, "includeHeaders": "true"}
    running = Running("alone", servers, None)
    Cluster(servers).ensure(Layout(running.app, "").topics, 1)
    running.order()
    read = session.readStream.format("kafka").options(**kafka, startingOffsets="earliest")
    source = read.option("subscribe", "shelf-alone.orders").load()
    with stage:
        query = start_real_time(
            stage(source), name="alone", kafka=kafka, checkpoint=tmp_path / "query", batch_s=5
        )
        try:
            found = running.consumed("public", ORDERS)
            dead = running.dead(3)
        finally:
            query.stop()
        session.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
        with pytest.raises(BadInput, match=r"timeZone=Asia/Tokyo, but a stage needs UTC"):
            stage(source)
    items = sorted(json.loads(value)["item"] for _, value, _ in found)
    assert items == sorted(f"TEA{number}" for number in range(ORDERS))
    assert set(dead) == {"clean", "check", "public"}


def test_a_projection_that_spark_does_not_take_is_refused_before_anything_starts(spark):
    app = sj.App("shop")
    orders = app.source("orders", schema="n string")
    wrong = app.project("wrong", reads=orders, columns={"n": "colour"})
    frame = own_session(spark).createDataFrame([], KAFKA)
    with pytest.raises(BadApplication, match=r"wrong\.columns\.n: .*colour"):
        project_read(frame, {"orders": wrong}, "dead")

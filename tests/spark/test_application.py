"""A whole application on real Spark and Kafka, as its author wrote it."""

import json
import time
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path

import fastavro
import pytest
from confluent_kafka import Consumer, Producer

import sojourn as sj
from schema_registry import schema_registry
from sojourn.app.operator import Hints
from sojourn.decide.plan import Plan
from sojourn.errors import BadInput, EngineError
from sojourn.spark.driver.kafka.cluster import Cluster
from sojourn.spark.driver.settings import SparkSettings
from sojourn.spark.driver.spark_engine import SparkEngine

pytestmark = pytest.mark.spark
DEADLINE_S = 180
ITEMS = ("tea", "bread")
ORDERS = 60


def consumed(servers, topic, enough):
    """Return the messages of a topic, once *enough* is true of them."""
    consumer = Consumer(
        {"bootstrap.servers": servers, "group.id": topic, "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    found, until_s = [], time.monotonic() + DEADLINE_S
    while not enough(found) and time.monotonic() < until_s:
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            found.append((message.value(), dict(message.headers() or [])))
    consumer.close()
    return found


def order(producer, item, number, photo=b"\x00\xff"):
    body = json.dumps({"item": item, "number": number}).encode()
    producer.produce("all-orders", body, headers={"sojourn-column-photo": photo})


@pytest.fixture(scope="module")
def servers(broker):
    broker.create_topics({"all-orders": 2})
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    order(producer, "tea", 1000)  # of which a run that starts later knows nothing
    producer.flush()
    time.sleep(0.1)
    return broker.bootstrap_servers


@pytest.fixture(scope="module")
def shop():
    from spark import shop  # noqa: PLC0415 - hosts import it by this name

    return shop.app


def engine(app, servers, **settings):
    told = {"servers": servers, "batch_s": 5.0, **settings}
    return SparkEngine(app, "spark.shop:app", SparkSettings(**told))


def topology(app):
    measured = {n: o.hints for n, o in app.operators.items() if o.hints.service_s is not None}
    guessed = {n: Hints(service_s=0.001) for n in app.operators if n not in measured}
    return app.topology({"orders": 10, "tips": 1}, measured=measured | guessed)


def test_an_application_does_what_it_says(servers, shop, tmp_path):
    with engine(shop, servers, starting=time.time(), state=tmp_path / "state") as running:
        running.start(topology(shop), Plan.here(dict.fromkeys(shop.operators, 1)))
        running.apply(Plan.here({**running.plan.allocation, "price": 3, "taxed": 2}))
        producer = Producer({"bootstrap.servers": servers})
        for number in range(ORDERS):
            order(producer, ITEMS[number % 2], 1)
            if number % 10 == 0:
                producer.produce("shop.tips", b'{"item": "tea"}')
        order(producer, "gold", 1)
        producer.produce("all-orders", b"not even JSON")
        producer.produce("all-orders", b'{"item": "tea", "number": 1}')  # no photo: it is null
        producer.flush()

        def complete(found):
            last = {json.loads(v)["item"]: json.loads(v)["total"] for v, _ in found}
            return last == {"TEA": 30 * (2 + 2) + 2, "BREAD": 30 * (3 + 2)}

        assert complete(consumed(servers, "shop.sums", complete))
        once = consumed(servers, "shop.taxed-once", lambda found: len(found) > ORDERS)
        assert len({headers["sojourn-id"] for _, headers in once}) == len(once) == ORDERS + 1
        # of this epoch, whether Spark or a host has made them
        epoch = (tmp_path / "state" / "epoch").read_text()
        dear = consumed(servers, "shop.dear", lambda found: len(found) > ORDERS)
        begins = {headers["sojourn-root"].split(b"/")[0] for _, headers in (*once, *dear)}
        assert [mark.startswith(b"all-orders@") for mark in begins] == [True]
        assert begins.pop().endswith(f"-{epoch}".encode())
        dead = consumed(servers, "shop.dead-letters", lambda found: len(found) > 1)
        assert {headers["sojourn-error"].split(b":")[0] for _, headers in dead} == {
            b"KeyError",
            b"sojourn.errors.BadRecord",
        }
        pulls, until_s = [], time.monotonic() + DEADLINE_S
        while time.monotonic() < until_s:
            pulls.append(running.observe(running.now_s + 1.0))
            if sum(pull.roots.completed for pull in pulls) >= ORDERS + 3 + 6:
                break
        # everything that came was seen to arrive, to be done, and to be complete
        entered = ORDERS + 3 + 6
        assert sum(pull.roots.completed for pull in pulls) == entered
        served = {
            name: sum(
                p.served
                for pull in pulls
                for o in pull.operators
                if o.name == name
                for p in o.processors
            )
            for name in shop.operators
        }
        assert served["price"] == ORDERS + 3
        told = [p for pull in pulls for o in pull.operators for p in o.processors]
        assert max(p.longest_service_s for p in told) > 0
        # every processor hears every tip
        assert served["taxed"] >= ORDERS + 1 + 6
        assert sum(o.backlog for o in pulls[-1].operators) == 0
        assert running.health().dead_letters == 2
        assert "prices tea" in (running.logs / "price.log").read_text()
        assert pulls[-1].cores > 0
        with pytest.raises(EngineError, match="sums runs inside Spark"):
            running.apply(Plan.here({**running.plan.allocation, "sums": 2}))
        said = []
        running.drain(said.append)
        assert said[-1] == "drained"


def test_avro_is_read_and_written(servers, monkeypatch, tmp_path):
    with schema_registry() as registry:
        monkeypatch.setenv("SCHEMA_REGISTRY", registry.url)
        from spark import clicks  # noqa: PLC0415 - hosts import it by this name

        told = SparkSettings(servers=servers, batch_s=5.0, state=tmp_path / "state")
        with SparkEngine(clicks.app, "spark.clicks:app", told) as running:
            running.start(clicks.app.topology({"clicks": 10}), Plan.here({"visits": 2}))
            assert list(registry.subjects) == ["visits-value"]
            click = fastavro.schema.load_schema(Path(__file__).with_name("clicks.avsc"))
            producer = Producer({"bootstrap.servers": servers})
            for number in range(20):
                body = BytesIO()
                record = {"user": f"u{number % 3}", "session": "s", "page": "p" * number}
                record |= {"at": datetime(2024, 12, 31, tzinfo=UTC), "photo": bytes([number])}
                fastavro.schemaless_writer(body, click, record)
                producer.produce("clicks.clicks", body.getvalue())
            producer.produce("clicks.clicks", b'{"user": "not Avro"}')
            producer.flush()
            found = consumed(servers, "clicks.visits", lambda found: len(found) >= 20)
            dead = consumed(servers, "clicks.dead-letters", lambda found: len(found) >= 1)
        ids = {int.from_bytes(body[1:5], "big") for body, _ in found}
        visit = fastavro.parse_schema(json.loads(registry.schemas[ids.pop() - 1]))
        assert not ids
        visits = [fastavro.schemaless_reader(BytesIO(body[5:]), visit) for body, _ in found]
        assert {(v["user"], v["n"], v["photo"], v["source"]) for v in visits} == {
            (f"u{n % 3}", 2024 + n, bytes([n]), "sojourn") for n in range(20)
        }
        assert [body for body, _ in dead] == [b'{"user": "not Avro"}']


def test_too_few_slots_are_refused_with_the_number_needed(servers, shop):
    with (
        engine(shop, servers, slots=3) as idle,
        pytest.raises(BadInput, match=r"has 3 slots, and 9 are needed .*; set slots to 9"),
    ):
        idle.start(topology(shop), Plan.here(dict.fromkeys(shop.operators, 1)))


def test_brokers_that_do_not_answer_are_named(shop):
    with (
        engine(shop, "127.0.0.1:9") as idle,
        pytest.raises(EngineError, match=r"no broker answers at 127\.0\.0\.1:9; check"),
    ):
        idle.start(topology(shop), Plan.here(dict.fromkeys(shop.operators, 1)))


@pytest.mark.parametrize("stream", ["taxed", "same"])
def test_a_deduplicated_sink_needs_as_many_partitions_as_its_stream(servers, stream):
    Cluster(servers).ensure(["other.taxed", "other.same"], 3)
    Cluster(servers).ensure(["other.once"], 1)
    other = sj.App("other")
    source = other.source("taxed", schema="item string")
    same = other.project("same", reads=source, columns={"item": "item"}, service_s=0.001)
    other.sink({"taxed": source, "same": same}[stream], name="once", deduplicate=True)
    with (
        SparkEngine(other, "nowhere:other", SparkSettings(servers=servers)) as idle,
        pytest.raises(
            BadInput,
            match=rf"other\.once has 1 partitions, and other\.{stream}, which it reads, has 3",
        ),
    ):
        idle.start(other.topology({"taxed": 1}), Plan.here({"same": 1}))

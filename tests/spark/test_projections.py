"""Projections that run in the query of a part, compared with queries of their own."""

import json
import time

import pytest
from confluent_kafka import Consumer, Producer

from sojourn.plan import Plan
from sojourn.spark.kafka.broker import Broker
from sojourn.spark.kafka.dead_letters import DeadLetters
from sojourn.spark.kafka.retry import retry_letters
from sojourn.spark.layout import Layout
from sojourn.spark.settings import SparkSettings
from sojourn.spark.spark_engine import SparkEngine

pytestmark = pytest.mark.spark
DEADLINE_S = 180
ORDERS = 40
TORN = b'{"item": null, "number": 3}'


@pytest.fixture(scope="module")
def servers(jars):
    with Broker(jars=jars, secured=False) as broker:
        yield broker.bootstrap_servers


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
        for number in range(ORDERS):
            body = json.dumps({"item": f"Tea{number}", "number": number}).encode()
            photo = {"sojourn-column-photo": bytes([number, 255])} if number % 2 else {}
            producer.produce(topic, body, b"key", number % 2, headers={**photo, "theirs": b"1"})
        producer.produce(topic, TORN, b"K", 0, headers={"theirs": b"2"})
        for item in (stone, {"item": "large", "number": 1}):
            headers = {"sojourn-column-photo": b"p"}
            producer.produce(topic, json.dumps(item).encode(), b"K", 1, headers=headers)
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

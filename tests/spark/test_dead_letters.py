"""Dead letters on a real broker: listed, shown and retried."""

import json
import time
from itertools import count

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from typer.testing import CliRunner

from sojourn.cli import app
from sojourn.spark.driver.kafka.broker import Broker
from sojourn.spark.wire.dead_letter import dead_letter
from sojourn.spark.wire.headers import record_of
from sojourn.spark.wire.relay import DeadResult

pytestmark = pytest.mark.spark
NUMBERS = count()


@pytest.fixture(scope="module")
def broker(jars):
    with Broker(jars=jars) as running:
        yield running


class Shop:
    """An application that has ended, with a source of two partitions and its dead letters."""

    def __init__(self, broker, options):
        self.broker, self._servers, self._options = broker, broker.bootstrap_servers, options
        self._clients = broker.cluster.for_clients
        told = (f"{name}={value}\n" for name, value in broker.cluster.options.items())
        options.write_text("".join(told))
        self.name = f"shop{next(NUMBERS)}"
        self.source, self.letters = f"{self.name}.orders", f"{self.name}.dead-letters"
        broker.create_topics({self.source: 2, self.letters: 2})
        self._producer = Producer(self._clients)

    def write(self, topic, value, **fields):
        """Write a message, and return the offset that it has."""
        told = []
        self._producer.produce(
            topic, value, on_delivery=lambda _, message: told.append(message), **fields
        )
        self._producer.flush()
        return told[0].offset()

    def fail(
        self,
        value,
        *,
        operator="parse",
        headers=(),
        most_bytes=1 << 20,
        partition=1,
        inner=False,
    ):
        """Write a record and its dead letter, as a relay does."""
        offset = self.write(
            self.source, value, partition=partition, key=b"K", headers=list(headers)
        )
        record = record_of(
            headers,
            value or b"",
            stream="orders",
            topic=self.source,
            partition=partition,
            offset=offset,
            timestamp_s=1_700_000_000.5,
            key=b"K",
        )
        failed = DeadResult(
            operator, record, f"ValueError: {operator}\nmore", "line 7", 3, inner
        )
        letter = dead_letter(failed, now_s=time.time(), most_bytes=most_bytes)
        self.write(self.letters, letter.value, key=letter.key, headers=letter.headers,
                   partition=partition)  # fmt: skip

    def run(self, *arguments, status=0):
        """Return what a command says."""
        reached = ["--bootstrap-servers", self._servers, "--kafka-options", str(self._options)]
        told = CliRunner().invoke(app, [*arguments, "--app", self.name, *reached])
        assert told.exit_code == status, told.output
        return told.output

    def listed(self, *arguments):
        """Return the dead letters that are listed."""
        return json.loads(self.run("dead-letters", "--json", *arguments))["dead_letters"]

    def at(self, partition, offset, topic=None):
        """Return the message at a place of the source, or of another topic."""
        reader = Consumer({**self._clients, "group.id": "test"})
        try:
            reader.assign([TopicPartition(topic or self.source, partition, offset)])
            message = reader.poll(30)
        finally:
            reader.close()
        assert message is not None
        assert message.error() is None
        return message


@pytest.fixture
def shop(broker, tmp_path):
    return Shop(broker, tmp_path / "kafka.options")


def test_a_partition_that_has_no_leader_yet_is_waited_for(shop, monkeypatch):
    """A topic that was just made answers so for a moment."""
    ask, asked = Consumer.offsets_for_times, []

    def leaderless_at_first(consumer, *places, **options):
        asked.append(places)
        if len(asked) == 1:
            raise KafkaException(KafkaError(KafkaError.NOT_LEADER_FOR_PARTITION))
        return ask(consumer, *places, **options)

    class Late(Consumer):
        offsets_for_times = leaderless_at_first

    monkeypatch.setattr("sojourn.spark.driver.kafka.dead_letters.Consumer", Late)
    shop.fail(b"no json")
    assert [letter["payload"] for letter in shop.listed()] == ["no json"]
    assert len(asked) >= 2  # a busy broker may be without a leader for longer


def test_dead_letters_are_listed_the_newest_last(shop):
    assert f"no dead letters in {shop.letters}" in shop.run("dead-letters")
    for number in range(3):
        shop.fail(f"no json {number}".encode(), partition=number % 2)
        time.sleep(0.002)  # Kafka's clock has milliseconds
    listed = shop.listed()
    assert [letter["payload"] for letter in listed] == [f"no json {n}" for n in range(3)]
    assert [letter["position"] for letter in listed] == ["0/0", "1/0", "0/1"]
    assert {letter["tries"] for letter in listed} == {3}
    assert listed[1]["came_from"] == f"{shop.source}/1/0"
    assert [letter["payload"] for letter in shop.listed("--limit", "1")] == ["no json 2"]
    table = shop.run("dead-letters", "--limit", "2")
    assert "ValueError: parse" in table
    assert "more" not in table.splitlines()[2]
    assert "the last 2 of 3" in table


def test_only_those_that_are_late_enough_are_listed(shop):
    shop.fail(b"no json")
    assert len(shop.listed("--since", "1h")) == 1
    assert len(shop.listed("--since", "2020-01-31T12:00:00Z")) == 1
    assert shop.listed("--since", "2099-01-31T12:00:00Z") == []
    assert "is not a time" in shop.run("dead-letters", "--since", "latest", status=2)


def test_all_of_one_is_shown(shop):
    shop.fail(b"\xff\x00", headers=[("trace-parent", b"00-1")])
    said = shop.run("dead-letters", "--show", "1/0")
    for part in ("base64:/wA=", "line 7", "trace-parent: 00-1", "more", f"{shop.source}/1/0"):
        assert part in said
    assert "no dead letter at 0/7" in shop.run("dead-letters", "--show", "0/7", status=2)


def test_what_is_put_back_in_is_as_it_was_and_for_one_operator(shop):
    given = [("sojourn-id", b"it"), ("sojourn-root", b"root"), ("sojourn-birth", b"12.5"),
             ("sojourn-column-photo", b"\xff"), ("other", b"1")]  # fmt: skip
    shop.fail(b"one", headers=given)
    shop.fail(b"two", operator="match")
    assert "no dead letters are selected" in shop.run("retry", status=2)
    assert "1 of 1 dead letters" in shop.run("retry", "--operator", "parse")
    message = shop.at(1, 2)
    headers = dict(message.headers())
    assert (message.value(), message.key()) == (b"one", b"K")
    assert {name: headers[name] for name, _ in given} == dict(given)
    assert headers["sojourn-for"] == f"{shop.letters}/parse".encode()
    assert headers["sojourn-trace"] == b"0"
    assert "sojourn-error" not in headers
    # and it is not offered again
    assert [letter["operator"] for letter in shop.listed()] == ["match"]
    assert "no dead letter at 1/0" in shop.run("retry", "1/0", status=2)
    assert "1 of 1 dead letters" in shop.run("retry", "--all")
    assert shop.listed() == []


def test_a_root_is_put_back_in_with_the_id_that_it_had(shop):
    shop.fail(b"one")
    shop.run("retry", "1/0")
    assert dict(shop.at(1, 1).headers())["sojourn-id"] == f"{shop.source}/1/0".encode()


def test_of_one_that_was_cut_the_whole_is_put_back_in(shop):
    whole = b"x" * 30_000
    shop.fail(whole, headers=[("other", b"1")], most_bytes=20_000)
    (letter,) = shop.listed()
    assert letter["cut"]
    assert len(letter["payload"]) < len(whole)
    shop.run("retry", "--all")
    message = shop.at(1, 1)
    assert message.value() == whole
    assert dict(message.headers())["other"] == b"1"


def test_one_that_never_was_in_a_topic_is_put_back_in_through_that_for_retries(shop):
    given = [("sojourn-id", b"it"), ("sojourn-root", b"root")]
    shop.fail(b"one", headers=given, inner=True)
    assert "there is no topic" in shop.run("retry", "--all", status=3)
    shop.broker.create_topics({f"{shop.name}.retries": 1})
    assert "1 of 1 dead letters" in shop.run("retry", "--all")
    message = shop.at(0, 0, topic=f"{shop.name}.retries")
    told = dict(message.headers())
    assert (message.value(), message.key(), told["sojourn-id"]) == (b"one", b"K", b"it")
    assert told["sojourn-stream"] == b"orders"
    assert told["sojourn-for"] == f"{shop.letters}/parse".encode()


def test_what_cannot_be_put_back_in_says_why_and_stays(shop):
    shop.write(shop.letters, b"old", headers=[("sojourn-operator", b"parse"),
               ("sojourn-error", b"no")], partition=0)  # fmt: skip
    gone = [("sojourn-error", b"no"), ("sojourn-position", b"gone/7/1")]
    shop.write(shop.letters, b"new", headers=gone, partition=0)
    lost = [("sojourn-error", b"no"), ("sojourn-cut", b"9"),
            ("sojourn-position", f"{shop.source}/1/77".encode())]  # fmt: skip
    shop.write(shop.letters, b"cut", headers=lost, partition=0)
    shop.fail(b"sound")
    assert shop.listed()[0]["operator"] == "parse"
    said = shop.run("retry", "--all", status=3)
    assert "0/0 was not retried: the position of its record is not known" in said
    assert "0/1 was not retried: gone has no partition 7" in said
    assert "0/2 was not retried: its payload was truncated" in said
    assert "1 of 4 dead letters" in said
    assert len(shop.listed()) == 3


def test_an_application_that_kafka_does_not_know_is_asked_after(shop):
    shop.name = "nobody"
    assert "there is no topic nobody.dead-letters" in shop.run("dead-letters", status=3)

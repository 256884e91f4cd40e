"""What brokers say of offsets when one of two is gone, and when topics grow."""

import os
import subprocess
import time
from contextlib import contextmanager

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewPartitions, NewTopic

from sojourn.errors import BrokerAway, EngineError
from sojourn.spark.driver.jvm.child_process import ChildProcess
from sojourn.spark.driver.jvm.java import find_java
from sojourn.spark.driver.kafka.broker import Broker
from sojourn.spark.driver.kafka.offsets import Offsets, PollTimes
from sojourn.spark.driver.kafka.ports import HOST, free_ports

pytestmark = pytest.mark.spark
DEADLINE_S = 120


def eventually(condition):
    until_s = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < until_s
        time.sleep(0.05)


@contextmanager
def second_node(jars, first, folder):
    """Run another broker of the same cluster."""
    port, _ = free_ports(None)
    told = dict(
        line.split("=", 1)
        for line in first.client_properties.with_name("server.properties")
        .read_text()
        .splitlines()
    )
    told |= {
        "process.roles": "broker",
        "node.id": "2",
        "listeners": f"PLAINTEXT://{HOST}:{port}",
        "advertised.listeners": f"PLAINTEXT://{HOST}:{port}",
    }
    folder.mkdir()
    lines = "".join(f"{name}={value}\n" for name, value in told.items())
    (folder / "server.properties").write_text(lines)
    java = [str(find_java()), "-Xmx256m", "-XX:TieredStopAtLevel=1"]
    java += ["-Dorg.slf4j.simpleLogger.defaultLogLevel=error"]
    java += ["-cp", os.pathsep.join(map(str, jars.broker))]
    subprocess.run(
        [
            *(*java, "kafka.tools.StorageTool", "format", "--config", "server.properties"),
            *("--cluster-id", first.cluster.identity()),
        ],
        cwd=folder,
        check=True,
    )
    child = ChildProcess(
        [*java, "kafka.Kafka", "server.properties"],
        folder=folder,
        log=folder / "log",
        grace_s=5,
    )
    try:
        client = first.cluster.client()
        eventually(lambda: len(client.list_topics(timeout=DEADLINE_S).brokers) > 1)
        yield child
    finally:
        child.stop()


def write(broker, topic, partition, number):
    producer = Producer(broker.cluster.for_clients | {"log_level": 0})
    for _ in range(number):
        producer.produce(topic, b"one", partition=partition)
    assert producer.flush(DEADLINE_S) == 0


def test_a_partition_whose_broker_is_gone_keeps_its_last_offset(jars, tmp_path):
    """The client says -1001 of it, and no error; the others go on being counted."""
    at_once = PollTimes(retry_s=0.0, start_s=0.0)
    with (
        Broker(jars=jars, secured=False) as first,
        second_node(jars, first, tmp_path / "second") as second,
    ):
        client = first.cluster.client()
        new = [NewTopic("shared", 2, replica_assignment=[[1], [2]])]
        for made in client.create_topics(new).values():
            made.result(DEADLINE_S)
        offsets = Offsets(first.cluster.client(), {"shared": 2})
        offsets.settle()
        write(first, "shared", 0, 2)
        write(first, "shared", 1, 5)
        assert offsets.look() == {"shared": {0: 2, 1: 5}}
        assert (offsets.standing, offsets.silent) == ("well", {})

        second.stop()
        write(first, "shared", 0, 1)
        assert offsets.look() == {"shared": {0: 3, 1: 5}}
        assert offsets.silent.keys() == {("shared", 1)}
        assert (offsets.standing, offsets.away_s) == ("shaky", None)
        # where an application begins must be known of every partition
        with pytest.raises(EngineError, match=r"no offsets of shared\[1\]"):
            Offsets(client, {"shared": 2}, at_once).partitions()
        with pytest.raises(EngineError, match=r"shared\[1\] has no leader after"):
            Offsets(client, {"shared": 2}, at_once).settle()

        first.kill()
        for _ in range(2):
            with pytest.raises(BrokerAway, match="no Kafka broker has answered for 0:"):
                offsets.look()
        assert offsets.standing == "away"
        assert offsets.away_s > 0
        first.start_again()
        eventually(lambda: offsets_answer(offsets))
        assert offsets.look()["shared"][0] == 3
        assert (offsets.standing, offsets.away_s) == ("shaky", None)


def offsets_answer(offsets):
    try:
        return offsets.look()
    except BrokerAway:
        return None


def test_partitions_that_are_added_are_noticed_and_what_topics_hold_is_counted(broker):
    broker.create_topics({"orders": 1, "tips": 1})
    write(broker, "orders", 0, 3)
    offsets = Offsets(
        broker.cluster.client(), {"orders": 1, "tips": 1}, PollTimes(seldom_s=0.0)
    )
    offsets.start()
    try:
        eventually(lambda: offsets.held(["orders", "tips"]) == 3)
        assert offsets.grown == {}
        client = broker.cluster.client()
        for made in client.create_partitions([NewPartitions("orders", 3)]).values():
            made.result(DEADLINE_S)
        eventually(lambda: offsets.grown == {"orders": (1, 3)})
        write(broker, "orders", 2, 4)
        eventually(lambda: offsets.look()["orders"] == {0: 3, 1: 0, 2: 4})
        eventually(lambda: offsets.held(["orders"]) == 7)
        assert broker.size_bytes(["orders"]) > 0 == broker.size_bytes(["tips", "order"])
    finally:
        offsets.stop()

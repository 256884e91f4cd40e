"""What was read is removed from topics of our own, and from no others."""

import time

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic

from sojourn.spark.driver.kafka.cluster import Cluster
from sojourn.spark.driver.kafka.deleted_records import Trimming
from sojourn.spark.driver.kafka.offsets import Offsets

pytestmark = pytest.mark.spark
DEADLINE_S = 60.0


@pytest.mark.timeout(180)
def test_what_all_readers_have_committed_is_removed_from_our_topics(broker):
    cluster = Cluster(broker.bootstrap_servers)
    client = cluster.client()
    cluster.ensure(["shop.between"], 1)
    client.create_topics([NewTopic("theirs", 1)])["theirs"].result(30)
    assert cluster.kept(["shop.between", "theirs"]) == ["shop.between"]
    assert cluster.kept(["nowhere"]) == []
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for number in range(10):
        producer.produce("shop.between", str(number))
    assert producer.flush(30) == 0
    offsets = Offsets(client, {"shop.between": 1})
    committed = [{"shop.between": {0: 6}}, {"shop.between": {0: 8}}]
    with Trimming(client, lambda: committed, every_s=0.05):
        until_s = time.monotonic() + DEADLINE_S
        while offsets.partitions("earliest")["shop.between"] != {0: 6}:
            assert time.monotonic() < until_s
            time.sleep(0.05)
    assert offsets.partitions()["shop.between"] == {0: 10}

"""Topics of an application on a real broker: made, found, and how long they keep records."""

import time

import pytest
from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import ConfigResource, NewTopic

import sojourn as sj
from sojourn.errors import BadInput, BrokerFailed
from sojourn.spark.driver.kafka.topics import await_leaders
from sojourn.spark.driver.layout import Layout

pytestmark = pytest.mark.spark
RETENTION = ("retention.ms", "retention.bytes")


@pytest.fixture(scope="module")
def cluster(broker):
    return broker.cluster


def retention(cluster, topic):
    place = ConfigResource(ConfigResource.Type.TOPIC, topic)
    client = cluster.client()  # which must live until it has answered
    told = client.describe_configs([place])[place].result(30)
    return {name: told[name].value for name in RETENTION}


def make(cluster, topic, **config):
    client = cluster.client()
    for made in client.create_topics([NewTopic(topic, 1, 1, config=config)]).values():
        made.result(30)


def test_what_we_make_keeps_records_for_ever(cluster):
    """An application that stands still over a weekend has its backlog in these topics."""
    cluster.ensure(["shop.inner", "shop.dead-letters"], 2)
    for topic in ("shop.inner", "shop.dead-letters"):
        assert retention(cluster, topic) == {"retention.ms": "-1", "retention.bytes": "-1"}


def test_a_fenced_topic_refuses_what_a_machine_sends_that_comes_back(cluster):
    """What its Kafka client still holds, others have written meanwhile."""
    cluster.ensure(["shop.once"], 1, fenced=True)
    cluster.ensure(["shop.any"], 1)
    assert cluster.fences(["shop.once", "shop.any"]) == {"shop.once": 10.0}
    told = []
    producer = Producer(cluster.for_clients)
    for age_s in (0, 60):
        producer.produce(
            "shop.once",
            b"",
            timestamp=int(1000 * (time.time() - age_s)),
            on_delivery=lambda error, _message: told.append(error and error.code()),
        )
        producer.flush(30)
    assert told == [None, KafkaError.INVALID_TIMESTAMP]


def test_a_topic_that_a_source_names_must_be_there(cluster):
    """A slip in its name would else be made, and read for ever."""
    make(cluster, "payments")
    make(cluster, "payments-eu")
    app = sj.App("shop")
    app.source("in", schema="n int", topic="paymnts")
    app.source("made", schema="n int", topic="shop.extra", create=True)
    app.source("default", schema="n int")
    topics = Layout(app, "nowhere:app").topics
    assert app.required_topics == {"in": "paymnts"}
    required = {"paymnts": "source in"}
    with pytest.raises(BadInput) as raised:
        cluster.ensure(topics, 1, required=required)
    assert str(raised.value) == (
        f"source in: there is no topic paymnts at {cluster.servers} (similar: payments, "
        "payments-eu); correct topic=, create it, or set create=True"
    )
    assert "shop.extra" not in cluster.client().list_topics(timeout=30).topics
    make(cluster, "paymnts")
    made = cluster.ensure(topics, 1, required=required)
    assert made.keys() == {"paymnts", "shop.extra", "shop.default", "shop.dead-letters"}


def test_a_name_like_no_other_has_no_neighbours(cluster):
    with pytest.raises(BadInput, match=r"no topic zebra at [\d.:]+; correct topic="):
        cluster.ensure([], 1, required={"zebra": "source in"})


def test_topics_without_a_leader_are_given_up(cluster):
    with pytest.raises(BrokerFailed, match="topics were not ready after 0 s"):
        await_leaders(cluster.client(), lambda _led: False, patience_s=0.0)

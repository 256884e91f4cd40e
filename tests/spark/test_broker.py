import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from processes import started
from sojourn.errors import BadFile, BadInput, BrokerFailed
from sojourn.spark.driver.kafka import broker as broker_module
from sojourn.spark.driver.kafka.broker import Broker
from sojourn.spark.driver.kafka.cluster import Cluster
from sojourn.spark.driver.kafka.folder import Folder, new_cluster
from sojourn.spark.driver.kafka.ports import HOST, answers, free_ports
from spark.test_watchdog import DEADLINE_S, group_is_gone, until

pytestmark = pytest.mark.spark
RECORDS = [(b"k1", b"one", [("root", b"\x00\x01"), ("root", b"again")]), (None, b"two", [])]


@pytest.fixture(scope="module")
def port():
    return free_ports(None)[0]


@pytest.fixture(scope="module")
def running(jars, port):
    with Broker(port=port, jars=jars) as broker:
        yield broker
    assert not answers(port)


@pytest.fixture
def taken():
    """Return a port that somebody listens on."""
    with socket.socket() as listening:
        listening.bind((HOST, 0))
        listening.listen()
        yield listening.getsockname()[1]


def write(cluster, topic, records):
    producer = Producer(cluster.for_clients | {"log_level": 0})
    for key, value, headers in records:
        producer.produce(topic, value, key, partition=0, headers=headers)
    assert producer.flush(DEADLINE_S) == 0


def read(cluster, topic, number):
    told = cluster.for_clients | {"group.id": "tests", "log_level": 0}
    consumer = Consumer(told | {"auto.offset.reset": "earliest"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found = [consumer.poll(DEADLINE_S) for _ in range(number)]
    consumer.close()
    return [(one.key(), one.value(), one.headers() or []) for one in found]


def topics(cluster):
    told = cluster.client().list_topics(timeout=DEADLINE_S).topics
    return {name: len(topic.partitions) for name, topic in told.items() if name[0] != "_"}


def test_records_come_back_with_keys_and_headers(running):
    running.create_topics({"echo": 1})
    write(running.cluster, "echo", RECORDS)
    assert read(running.cluster, "echo", 2) == RECORDS


def test_topics_are_made_once_with_their_partitions(running):
    running.create_topics({"many": 7, "one": 1})
    running.create_topics({"many": 7, "more": 2})
    running.create_topics({})
    there = topics(running.cluster)
    assert (there["many"], there["one"], there["more"]) == (7, 1, 2)
    with pytest.raises(BrokerFailed, match="topic many has 7 partitions, not 8"):
        running.create_topics({"many": 8, "late": 1})
    assert "late" not in topics(running.cluster)


@pytest.mark.parametrize(
    "wrong", [{"": 1}, {"..": 1}, {"a b": 1}, {"a" * 250: 1}, {"a": 0}, {"a": 10**6}]
)
def test_topics_that_kafka_would_refuse_are_bad_input(running, wrong):
    with pytest.raises(BadInput):
        running.create_topics(wrong)


def test_what_kafka_refuses_all_the_same_is_said(running):
    """Its metrics take dots and underscores for the same."""
    running.create_topics({"same.name": 1})
    with pytest.raises(BrokerFailed, match=r"topics could not be created: .*collides"):
        running.create_topics({"same_name": 1})


def test_what_listens_and_is_no_broker_does_not_count(taken, monkeypatch):
    monkeypatch.setattr(broker_module, "_ANSWER_S", 0.1)
    assert answers(taken)
    assert broker_module._identity(Cluster(f"{HOST}:{taken}")) is None  # noqa: SLF001


def test_topics_are_not_made_by_chance(running):
    refused = []
    producer = Producer(running.cluster.for_clients | {"topic.metadata.propagation.max.ms": 0})
    producer.produce("slip", b"", on_delivery=lambda error, _: refused.append(error))
    assert producer.flush(DEADLINE_S) == 0
    assert refused[0].name() == "UNKNOWN_TOPIC_OR_PART"


def test_a_port_that_is_given_is_used_for_this_machine_alone(running, port):
    assert running.bootstrap_servers == f"127.0.0.1:{port}"
    assert answers(port)


def test_a_broker_that_runs_is_not_started_again(running):
    with pytest.raises(BrokerFailed, match="is already running"):
        running.start()


def test_a_broker_that_does_not_run_says_so():
    broker = Broker()
    broker.stop()
    with pytest.raises(BrokerFailed, match="start it first"):
        _ = broker.bootstrap_servers


def test_a_folder_keeps_topics_and_records_from_one_start_to_the_next(jars, tmp_path):
    """Kafka would split its name at a comma; and it may be of a version without passwords."""
    data = tmp_path / "größe, data"
    with Broker(data=data, jars=jars, secured=False) as first:
        first.create_topics({"echo": 1})
        write(first.cluster, "echo", RECORDS)
        group = first.process_group
        cluster = Folder(path=data, temporary=False).cluster
        with pytest.raises(BrokerFailed, match="another broker uses"):
            Broker(data=data, jars=jars).start()
    assert group_is_gone(group)
    data.chmod(0o755)
    (data / "server.properties").chmod(0o644)
    with Broker(data=data, jars=jars) as second:
        assert read(second.cluster, "echo", 2) == RECORDS
        assert Folder(path=data, temporary=False).cluster == cluster
        modes = [oct(path.stat().st_mode & 0o777) for path in (data, second.client_properties)]
        assert modes == ["0o700", "0o600"]
        assert (data / "server.properties").stat().st_mode & 0o777 == 0o600


def test_a_killed_broker_is_noticed_with_what_it_said_last(jars, tmp_path):
    with Broker(data=tmp_path / "data", jars=jars) as broker:
        (jvm,) = children(broker.process_group)
        os.kill(jvm, signal.SIGKILL)
        with pytest.raises(BrokerFailed, match="exited with status 137") as raised:
            broker.wait()
    assert str(tmp_path / "data" / "broker.log") in str(raised.value)
    assert raised.value.log


def children(process):
    ps = ["ps", "-eo", "pid=,ppid="]
    told = subprocess.run(ps, capture_output=True, text=True, check=True).stdout.splitlines()
    return [int(pid) for pid, parent in map(str.split, told) if int(parent) == process]


KILLED = """
import sys, time
from pathlib import Path
from sojourn.spark.driver.kafka.broker import Broker
from sojourn.spark.driver.kafka.cluster import Cluster
broker = Broker()
broker.start()
print(broker.process_group, broker._folder.path, flush=True)
time.sleep(1000)
"""


@pytest.mark.usefixtures("jars")
def test_a_killed_process_leaves_neither_java_nor_files():
    with started([sys.executable, "-c", KILLED], stdout=subprocess.PIPE) as process:
        group, path = process.stdout.readline().decode().split(maxsplit=1)
        folder = Path(path.strip())
        assert folder.is_dir()
    until(lambda: group_is_gone(int(group)))
    assert not folder.exists()


def test_a_port_that_is_taken_is_refused(jars, taken):
    with pytest.raises(BrokerFailed, match=f"port {taken} is in use; choose another"):
        Broker(port=taken, jars=jars).start()


@pytest.mark.parametrize("port", [-1, 65536, 10**9])
def test_a_port_that_is_none_is_refused(jars, port):
    with pytest.raises(BrokerFailed, match=f"port {port} cannot be used"):
        Broker(port=port, jars=jars).start()


def test_a_port_taken_at_the_last_moment_is_given_up_for_another(jars, taken, monkeypatch):
    choices = [free_ports(None), (free_ports(None)[0], taken)]
    last = choices[0][0]
    monkeypatch.setattr(broker_module, "free_ports", lambda *_wanted: choices.pop())
    with Broker(jars=jars) as broker:
        assert broker.bootstrap_servers == f"127.0.0.1:{last}"


def test_a_port_that_others_always_take_is_given_up(jars, taken, monkeypatch):
    monkeypatch.setattr(
        broker_module, "free_ports", lambda *_wanted: (free_ports(None)[0], taken)
    )
    monkeypatch.setattr(broker_module, "_ATTEMPTS", 1)
    with pytest.raises(BrokerFailed, match="Address already in use"):
        Broker(jars=jars).start()


def test_what_kafka_does_not_understand_is_shown(jars):
    with pytest.raises(BrokerFailed) as raised:
        Broker(properties={"log.retention.hours": "soon"}, jars=jars).start()
    assert raised.value.log[-1].endswith(
        "Invalid value soon for configuration log.retention.hours: Not a number of type INT"
    )


def test_what_ends_a_broker_that_started_is_shown(jars, tmp_path):
    meta = tmp_path / "data" / "data" / "meta.properties"
    meta.parent.mkdir(parents=True)
    meta.write_text(f"version=1\nnode.id=2\ncluster.id={new_cluster()}\n")
    with pytest.raises(BrokerFailed) as raised:
        Broker(data=tmp_path / "data", jars=jars).start()
    assert "node" in str(raised.value)
    assert not any(re.match(r"\s+at ", line) for line in raised.value.log)


def test_a_broker_that_takes_too_long_is_given_up(jars):
    broker = Broker(jars=jars, patience_s=0.0)
    with pytest.raises(BrokerFailed, match="did not answer within 0 s"):
        broker.start()
    with pytest.raises(BrokerFailed, match="start it first"):
        _ = broker.process_group


def test_a_folder_with_other_files_is_left_alone(jars, tmp_path):
    (tmp_path / "thesis.txt").touch()
    with pytest.raises(BadFile, match=r"data folder of a broker: it contains thesis.txt"):
        Broker(data=tmp_path, jars=jars).start()
    assert [found.name for found in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_folder_that_cannot_be_made_is_named(jars, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(BadFile, match="cannot be used: Not a directory"):
        Broker(data=tmp_path / "file" / "data", jars=jars).start()


def test_ids_of_clusters_are_no_options():
    assert all(re.fullmatch(r"[\w][\w-]{21}", new_cluster()) for _ in range(1000))

"""An application with a broker of its own: who is let in, and what happens when it dies."""

import json
import os
import socket
import struct
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewPartitions
from py4j.java_gateway import GatewayParameters, JavaGateway
from pyspark import SparkContext

from sojourn.app.loading import load
from sojourn.decide.plan import Plan
from sojourn.engine import InnerTopics
from sojourn.errors import BrokerAway, BrokerFailed
from sojourn.spark.driver.kafka.broker import Broker
from sojourn.spark.driver.kafka.cluster import Cluster
from sojourn.spark.driver.kafka.ports import free_ports
from sojourn.spark.driver.settings import SparkSettings
from sojourn.spark.driver.spark_engine import SparkEngine
from sojourn.topology.file import read_topology

pytestmark = pytest.mark.spark
DEADLINE_S = 200
NOBODY = 65534
CHAIN = {
    "format": 1,
    "name": "owned",
    "arrivals": {"in": {"per_s": 5, "into": "a"}},
    "operators": {"a": {"service_s": 0.001, "emits": {"b": 1}}, "b": {"service_s": 0.001}},
}


@pytest.fixture(scope="module")
def port():
    return free_ports(None)[0]


@pytest.fixture(scope="module")
def steps():
    return []


@pytest.fixture(scope="module")
def engine(jars, port, steps, tmp_path_factory):  # noqa: ARG001 - they must be there
    address = tmp_path_factory.mktemp("owned") / "owned.json"
    address.write_text(json.dumps(CHAIN))
    settings = SparkSettings(batch_s=5, broker_port=port)
    with SparkEngine(load(str(address)), str(address), settings, steps.append) as running:
        running.start(read_topology(address), Plan.here({"a": 1, "b": 1}))
        yield running


@pytest.mark.usefixtures("engine")
def test_a_start_says_what_it_is_at(steps):
    assert steps[:3] == [
        "starting a Kafka broker",
        "starting 1 host and Spark",
        "waiting for Spark to read from Kafka",
    ]


def send(engine, number, topic="owned.in", partition=0):
    told = {**engine.clients, "log_level": 0}
    producer = Producer(told)
    for _ in range(number):
        producer.produce(topic, b'{"n": 1}', partition=partition)
    assert producer.flush(DEADLINE_S) == 0


def served(engine, number):
    """Return when the last operator has done *number* records."""
    done, until_s = 0, time.monotonic() + DEADLINE_S
    while done < number:
        assert time.monotonic() < until_s, f"{done} of {number}"
        try:
            pull = engine.observe(engine.now_s + 0.5)
        except BrokerAway:
            continue
        done += sum(p.served for o in pull.operators if o.name == "b" for p in o.processors)
    return done


def as_nobody(look):
    """Return what *look* returns to a user of the system who is not us."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        said = "it did not come so far"
        # Py4J shuts connections down when it forgets them, and those are its parent's too
        os.closerange(3, writing)
        os.closerange(writing + 1, os.sysconf("SC_OPEN_MAX"))
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            said = json.dumps(look())
        except BaseException as error:  # noqa: BLE001 - whatever it is must be told
            said = json.dumps(repr(error))
        finally:
            os.write(writing, said.encode())
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as told:
        text = told.read()
    os.waitpid(child, 0)
    return json.loads(text)


def listening():
    """Return the ports, and the Unix sockets, of all that runs for this process."""
    ports, paths = set(), set()
    for process in [psutil.Process(), *psutil.Process().children(recursive=True)]:
        try:
            links = process.net_connections("all")
        except psutil.Error:  # it has just ended
            continue
        for link in links:
            if link.family == socket.AF_UNIX and link.laddr:
                paths.add(link.laddr)
            elif link.status == psutil.CONN_LISTEN:
                assert link.laddr.ip.removeprefix("::ffff:") == "127.0.0.1"
                ports.add(link.laddr.port)
    return ports, paths


def ports_of(process):
    with suppress(psutil.NoSuchProcess):  # it has just ended
        links = process.net_connections("tcp")
        return {link.laddr.port for link in links if link.status == psutil.CONN_LISTEN}
    return set()


def broker_process(port):
    (found,) = (
        process
        for process in psutil.Process().children(recursive=True)
        if port in ports_of(process)
    )
    return found


def kafka_lets_in(port):
    try:
        asked = {"bootstrap.servers": f"127.0.0.1:{port}", "log_level": 0}
        return sorted(AdminClient(asked).list_topics(timeout=5).topics)
    except KafkaException as error:
        return str(error)


def spark_says(port):
    """Return the answer to a message of Spark's from somebody who has not logged in."""
    body = struct.pack(">bqi", 3, 7, 4) + b"hola"  # a request, its number, its length
    with socket.create_connection(("127.0.0.1", port), timeout=20) as link:
        link.sendall(struct.pack(">q", 8 + len(body)) + body)
        return link.recv(4096).decode(errors="replace")


def java_lets_in(port):
    told = GatewayParameters(address="127.0.0.1", port=port, eager_load=False)
    try:
        return JavaGateway(gateway_parameters=told).jvm.System.currentTimeMillis()
    except Exception as error:  # noqa: BLE001 - of many kinds
        return type(error).__name__


def unix_lets_in(path):
    with socket.socket(socket.AF_UNIX) as link:
        try:
            link.connect(path)
        except OSError as error:
            return type(error).__name__
        return "connected"


def test_records_go_through_a_broker_that_wants_a_password(engine, port):
    assert engine.servers == f"127.0.0.1:{port}"
    send(engine, 20)
    assert served(engine, 20) == 20
    health = engine.health()  # nothing between its operators is in Kafka
    assert health.inner_topics == InnerTopics()


def test_what_lets_us_in_lets_others_in_who_may_read_the_file_and_nobody_else(engine):
    path = Path(engine.kafka().client_properties)
    assert oct(path.stat().st_mode & 0o777) == "0o600"
    assert oct(path.parent.stat().st_mode & 0o777) == "0o700"
    told = dict(line.split("=", 1) for line in path.read_text().splitlines())
    assert told["security.protocol"] == "SASL_PLAINTEXT"
    assert f'password="{engine.clients["sasl.password"]}"' in told["sasl.jaas.config"]
    secret = engine.clients["sasl.password"].encode()
    written = [path for path in engine.logs.parent.rglob("*") if path.is_file()]
    assert engine.logs / "spark.log" in written
    assert not any(secret in path.read_bytes() for path in written)
    for process in psutil.Process().children(recursive=True):
        for shown in (
            "cmdline",
            "environ",
        ):  # the latter is for its owner, but goes to children
            try:
                assert secret not in Path(f"/proc/{process.pid}/{shown}").read_bytes()
            except (FileNotFoundError, ProcessLookupError):  # it has just ended
                continue


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.usefixtures("engine")
def test_nothing_that_listens_lets_in_another_user_of_the_machine(kafka, port):
    ports, paths = listening()
    ports -= ports_of(broker_process(int(kafka.bootstrap_servers.rpartition(":")[2])))
    java = SparkContext._gateway.gateway_parameters.port  # noqa: SLF001 - nothing else tells
    broker = ports_of(broker_process(port))
    assert len(broker) == 2  # clients', and brokers' among themselves
    for one in broker:
        assert "KafkaError" in as_nobody(lambda one=one: kafka_lets_in(one))
    spark = ports - broker - {java}
    assert spark
    for one in spark:
        assert "SaslMessage" in as_nobody(lambda one=one: spark_says(one))
    if java in ports:
        assert as_nobody(lambda: java_lets_in(java)).startswith("Py4J")
    blocks = SparkContext._active_spark_context.getConf().get("spark.local.dir")  # noqa: SLF001
    assert list(Path(blocks).glob("blockmgr-*"))
    assert "PermissionError" in as_nobody(lambda: [str(one) for one in Path(blocks).iterdir()])
    assert paths
    for path in paths:
        refused = {"PermissionError", "FileNotFoundError"}
        assert as_nobody(lambda path=path: unix_lets_in(path)) in refused, path


def test_a_broker_that_dies_is_started_again_with_its_port_and_its_records(engine, port):
    broker_process(port).kill()
    until_s = time.monotonic() + DEADLINE_S
    while not engine.health().restarts["own broker"]:
        assert time.monotonic() < until_s
        time.sleep(0.1)
    send(engine, 10)
    assert engine.servers == f"127.0.0.1:{port}"
    served(engine, 10)
    assert engine.health().restarts["own broker"] == 1
    assert engine.health().failure == ""


def test_a_partition_that_is_added_is_read_without_a_restart(engine):
    """Spark plans partitions for each batch, and there are slots for more of them."""
    before = engine.health().restarts
    client = Cluster(engine.servers, engine.clients).client()
    for made in client.create_partitions([NewPartitions("owned.in", 2)]).values():
        made.result(DEADLINE_S)
    until_s = time.monotonic() + DEADLINE_S
    while not any(
        "owned.in has 2 partitions, 1 at" in said for said in engine.health().notices
    ):
        assert time.monotonic() < until_s
        time.sleep(0.1)
    send(engine, 10, partition=1)
    served(engine, 10)
    assert engine.health().restarts == before


def test_a_port_that_is_taken_is_refused_before_spark_is_started(engine, port, tmp_path):
    address = tmp_path / "owned.json"
    address.write_text(json.dumps(CHAIN))
    assert engine.servers.endswith(f":{port}")
    other = SparkEngine(load(str(address)), str(address), SparkSettings(broker_port=port))
    with pytest.raises(BrokerFailed, match=f"port {port} is in use; choose another"):
        other.start(read_topology(address), Plan.here({"a": 1, "b": 1}))


def test_an_open_broker_lets_in_everybody(jars):
    with Broker(jars=jars, secured=False) as broker:
        assert broker.cluster.options == {}
        broker.create_topics({"frames": 1})
        assert "frames" in kafka_lets_in(int(broker.bootstrap_servers.rpartition(":")[2]))
        assert broker.client_properties.read_text() == (
            f"bootstrap.servers={broker.bootstrap_servers}\n"
        )


def test_a_client_without_the_password_is_refused(jars):
    with Broker(jars=jars) as broker:
        with pytest.raises(BrokerFailed, match="no broker answers at"):
            Cluster(broker.bootstrap_servers).identity()
        wrong = {**broker.cluster.options, "sasl.password": "guess"}
        with pytest.raises(BrokerFailed, match="no broker answers at"):
            Cluster(broker.bootstrap_servers, wrong).identity()

import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import msgspec
import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition

from processes import started
from sojourn.errors import BadWorkload, BrokerFailed, EngineError
from sojourn.spark.driver.kafka.broker import Broker
from sojourn.spark.driver.kafka.ports import HOST, free_ports
from sojourn.spark.driver.load.offered_load import Load, LoadReport, Source
from sojourn.spark.driver.load.producer import LoadProcess, main
from sojourn.spark.driver.load.sender import Sender
from spark.test_watchdog import DEADLINE_S, group_is_gone, until

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def servers(jars):
    with Broker(jars=jars, secured=False, properties={"message.max.bytes": "150000"}) as broker:
        broker.create_topics(dict.fromkeys(("even", "wide", "long", "kept", "said"), 1))
        broker.create_topics({"many": 4})
        yield broker.bootstrap_servers


@pytest.fixture
def nobody():
    """Return an address that nobody listens at."""
    return f"{HOST}:{free_ports(None)[0]}"


def constant(topic, per_s, **fields):
    return Source(topic=topic, points=((0, per_s),), gaps="constant", **fields)


def written(servers, topic, partition=0):
    """Return what is in a partition, and when it was written."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "tests", "log_level": 0})
    try:
        _, end = consumer.get_watermark_offsets(TopicPartition(topic, partition), DEADLINE_S)
        consumer.assign([TopicPartition(topic, partition, 0)])
        found = [consumer.poll(DEADLINE_S) for _ in range(end)]
    finally:
        consumer.close()
    return [(json.loads(one.value()), one.timestamp()[1] / 1000) for one in found]


def number_written(servers, topic):
    """Return how many records there are; 0 while no broker leads the topic yet."""
    try:
        return len(written(servers, topic))
    except KafkaException:
        return 0


def test_records_are_sent_when_they_are_due_and_counted(servers):
    load = Load(
        servers=servers,
        sources=(constant("even", 200), constant("wide", 40, size_bytes=1000)),
        lasts_s=0.999,
    )
    with LoadProcess(load) as process:
        sent = process.wait()
        assert process.sent == sent
    assert sent.sent == {"even": 199, "wide": 39}
    assert sent.failed == {"even": 0, "wide": 0}
    assert sent.error == ""
    even = written(servers, "even")
    assert [record for record, _ in even] == [{"seed": n} for n in range(199)]
    first_s = even[0][1]
    for n, (_, at_s) in enumerate(even):
        # never early, and never later than it says; the broker keeps whole milliseconds
        assert at_s - first_s == pytest.approx(n / 200, abs=sent.late_s + 0.002)
    assert {len(json.dumps(r, separators=(",", ":"))) for r, _ in written(servers, "wide")} == {
        1000
    }


def test_every_partition_gets_its_part(servers):
    load = Load(servers=servers, sources=(constant("many", 400),), lasts_s=0.999)
    assert Sender(load).run().sent == {"many": 399}
    parts = [len(written(servers, "many", partition)) for partition in range(4)]
    assert sum(parts) == 399
    assert min(parts) > 40


def test_a_load_that_is_stopped_tells_what_it_has_sent(servers):
    with LoadProcess(Load(servers=servers, sources=(constant("long", 100),))) as process:
        group = process._process.group  # noqa: SLF001
        with pytest.raises(EngineError, match="is still running"):
            _ = process.sent
        with pytest.raises(EngineError, match="is already running"):
            process.start()
        until(lambda: number_written(servers, "long"))
    assert process.sent.sent["long"] == len(written(servers, "long")) > 0
    assert process.sent.error == ""
    assert process.wait() == process.sent
    process.stop()
    assert group_is_gone(group)


PARENT = """
import sys, time
from sojourn.spark.driver.load.producer import LoadProcess
from sojourn.spark.driver.load.offered_load import Load, Source
source = Source(topic="kept", points=((0, 100),))
with LoadProcess(Load(servers=sys.argv[1], sources=(source,))) as process:
    print(process._process.group, flush=True)
    time.sleep(1000)
"""


def test_a_load_ends_with_the_process_that_started_it(servers):
    with started([sys.executable, "-c", PARENT, servers], stdout=subprocess.PIPE) as parent:
        group = int(parent.stdout.readline())
        until(lambda: number_written(servers, "kept"))
    until(lambda: group_is_gone(group))


def test_a_topic_that_is_not_there_is_missed_and_not_made(servers):
    load = Load(servers=servers, sources=(constant("even", 1), constant("nowhere", 1)))
    for _ in range(2):
        with pytest.raises(BrokerFailed, match="there is no topic nowhere; create it first"):
            Sender(load).run()


def test_a_process_that_failed_says_why(servers):
    with (
        LoadProcess(Load(servers=servers, sources=(constant("nowhere", 1),))) as process,
        pytest.raises(EngineError, match=r"status 1; .* there is no topic nowhere"),
    ):
        process.wait()
    with pytest.raises(EngineError, match="no topic nowhere"):
        _ = process.sent


def test_a_setting_that_kafka_does_not_have_is_refused():
    load = Load(servers="a:1", sources=(constant("even", 1),), kafka={"lingr.ms": "1"})
    with pytest.raises(BadWorkload, match=r"kafka: .*lingr\.ms"):
        Sender(load)


def test_a_broker_that_is_not_there_is_named(nobody):
    load = Load(servers=nobody, sources=(constant("even", 1),))
    with pytest.raises(BrokerFailed, match=f"no broker answers at {nobody}"):
        Sender(load, answer_s=0.1).run()


def test_what_the_broker_refuses_is_counted(servers):
    sources = (constant("long", 10, size_bytes=200_000), constant("even", 10))
    sent = Sender(Load(servers=servers, sources=sources, lasts_s=0.55)).run()
    assert sent.failed == {"long": 5, "even": 0}
    assert sent.sent == {"long": 0, "even": 5}
    assert "MSG_SIZE_TOO_LARGE" in sent.error


def test_what_the_client_refuses_is_counted(servers):
    source = constant("long", 10, size_bytes=3_000_000)
    sent = Sender(Load(servers=servers, sources=(source,), lasts_s=0.25)).run()
    assert (sent.sent, sent.failed) == ({"long": 0}, {"long": 2})
    assert "MSG_SIZE_TOO_LARGE" in sent.error


@pytest.mark.parametrize(
    ("kafka", "patience_s", "said"),
    [
        ({"message.timeout.ms": "200"}, DEADLINE_S, "timed out"),
        ({}, 0.0, "the broker did not confirm them in time"),
    ],
)
def test_what_a_broker_that_went_away_did_not_confirm_has_failed(jars, kafka, patience_s, said):
    with ExitStack() as stack:
        broker = stack.enter_context(Broker(jars=jars, secured=False))
        broker.create_topics({"lost": 1})
        servers = broker.bootstrap_servers
        load = Load(servers=servers, sources=(constant("lost", 500),), kafka=kafka)
        sending = Sender(load, confirm_s=patience_s)
        thread = stack.enter_context(ThreadPoolExecutor())
        stack.callback(sending.stop)  # else the thread would be waited for, whatever raised
        running = thread.submit(sending.run)
        until(lambda: number_written(servers, "lost"))
        broker.stop()
        sending.stop()
        sent = running.result(DEADLINE_S)
    assert sent.sent["lost"] > 0
    assert sent.failed["lost"] > 0
    assert said in sent.error


def test_a_client_that_is_full_makes_the_rest_late_but_loses_nothing(servers):
    small = {"queue.buffering.max.messages": "5"}
    source = constant("said", 2000)
    sent = Sender(Load(servers=servers, sources=(source,), lasts_s=0.4999, kafka=small)).run()
    assert sent.sent == {"said": 999}
    assert sent.late_s > 0


def test_the_program_reads_and_writes_json(servers, tmp_path):
    asked = Load(servers=servers, sources=(constant("said", 100),), lasts_s=0.099)
    (tmp_path / "load.json").write_bytes(msgspec.json.encode(asked))
    before = [signal.getsignal(told) for told in (signal.SIGTERM, signal.SIGINT)]
    try:
        assert main(tmp_path) == 0
    finally:
        for told, handler in zip((signal.SIGTERM, signal.SIGINT), before, strict=True):
            signal.signal(told, handler)
    report = (tmp_path / "report.json").read_bytes()
    assert msgspec.json.decode(report, type=LoadReport).sent == {"said": 9}


def test_a_signal_ends_the_program_with_its_report(servers, tmp_path):
    asked = Load(servers=servers, sources=(constant("said", 100),))
    (tmp_path / "load.json").write_bytes(msgspec.json.encode(asked))
    before = len(written(servers, "said"))
    with started(
        [sys.executable, "-m", "sojourn.spark.driver.load.producer"], cwd=tmp_path
    ) as program:
        until(lambda: number_written(servers, "said") > before)
        os.kill(program.pid, signal.SIGINT)
        assert program.wait() == 0
    report = (tmp_path / "report.json").read_bytes()
    assert msgspec.json.decode(report, type=LoadReport).sent["said"] > 0


def test_what_does_not_run_has_nothing_to_tell():
    process = LoadProcess(Load(servers="a:1", sources=(constant("even", 1),)))
    process.stop()
    with pytest.raises(EngineError, match="was not started"):
        process.wait()

"""`sojourn broker` as a user runs it: what it prints, and how it ends."""

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from typer.testing import CliRunner

from processes import started
from sojourn.cli import app
from sojourn.spark.driver.kafka.broker import Broker
from sojourn.spark.driver.kafka.cluster import Cluster
from sojourn.spark.driver.settings import read_client_options
from spark.test_broker import topics

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("jars")]


def broker(*arguments):
    return started(
        [sys.executable, "-m", "sojourn", "broker", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_it_says_when_it_is_ready_and_ends_well_with_ctrl_c():
    with broker("--topic", "frames:4", "--topic", "results:1", "--json") as process:
        ready = json.loads(process.stdout.readline())
        assert ready["pid"] == process.pid
        told = read_client_options([], Path(ready["client_properties"]))
        cluster = Cluster(ready["bootstrap_servers"], told)
        assert topics(cluster) == {"frames": 4, "results": 1}
        settings = json.loads(Path(ready["client_settings"]).read_text())
        client = AdminClient(settings)  # it refuses settings that it does not know
        assert {"frames", "results"} <= client.list_topics(timeout=10).topics.keys()
        process.send_signal(signal.SIGINT)
        assert process.communicate() == ("", "")
        assert process.returncode == 0


def test_it_says_what_to_connect_to_and_ends_well_when_terminated(tmp_path, monkeypatch):
    monkeypatch.setattr(Broker, "wait", lambda _self: signal.raise_signal(signal.SIGTERM))
    before = signal.getsignal(signal.SIGTERM)
    done = CliRunner().invoke(app, ["broker", "--data", str(tmp_path / "data")])
    signal.signal(signal.SIGTERM, before)
    servers, properties, settings = done.stdout.splitlines()
    assert servers.startswith("bootstrap servers: 127.0.0.1:")
    data = tmp_path / "data"
    assert properties == f"client properties for Kafka's tools: {data}/client.properties"
    assert settings == f"client settings for confluent-kafka: {data}/client.json"
    assert (done.stderr, done.exit_code) == ("Ctrl-C: stop the broker\n", 0)
    assert (tmp_path / "data" / "broker.log").exists()


def test_a_busy_port_is_one_line_and_status_3():
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        port = listening.getsockname()[1]
        said = f"sojourn: port {port} is in use; choose another, or stop what listens there\n"
        with broker("--port", port) as process:
            assert process.communicate() == ("", said)
            assert process.returncode == 3


@pytest.mark.parametrize(
    ("topics", "said"),
    [
        (["frames"], "'frames' is not TOPIC:PARTITIONS; write frames:4"),
        (["frames:many"], "'frames:many' is not TOPIC:PARTITIONS"),
        (["a:1", "a:2"], "topic a is given twice"),
        (["a b:1"], "'a b' is not a topic name"),
        (["a:0"], "topic a: 0 partitions"),
    ],
)
def test_a_topic_that_cannot_be_is_refused_before_anything_starts(topics, said):
    options = [option for topic in topics for option in ("--topic", topic)]
    done = CliRunner().invoke(app, ["broker", *options])
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith(f"sojourn: {said}")


def test_without_the_client_the_extra_is_named():
    code = (
        "import sys; sys.modules['confluent_kafka'] = None\n"
        "from sojourn.cli import main; sys.argv = ['sojourn', 'broker']; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 3
    assert done.stderr.endswith("which is not installed; install sojourn[spark]\n")


def test_a_mirror_can_be_named(tmp_path):
    process = subprocess.run(
        [sys.executable, "-m", "sojourn", "broker", "--ivy-settings", tmp_path / "gone.xml"],
        env=os.environ | {"SOJOURN_JARS": str(tmp_path / "jars")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 2
    assert "gone.xml: cannot be read" in process.stderr

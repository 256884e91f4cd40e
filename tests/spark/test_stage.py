"""Functions as a step of a query of the user's own: the example, and what is refused."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from pyspark.sql import functions as sql

from sojourn.errors import BadInput, EngineError
from sojourn.spark.driver.jvm.session import end_session, new_session
from sojourn.spark.driver.kafka.cluster import Cluster
from sojourn.spark.driver.state.key_states import KeyStates
from sojourn.spark.stage import Stage

pytestmark = pytest.mark.spark
EXAMPLES = Path(__file__).parents[2] / "examples"
DEADLINE_S = 180


@pytest.fixture(scope="module", autouse=True)
def _topics(broker):
    broker.create_topics({"lines": 2, "words.shout": 1})


def test_the_example_runs_spark_before_and_after_the_functions(broker, tmp_path):
    servers = broker.bootstrap_servers
    producer = Producer({"bootstrap.servers": servers})
    for number in range(20):
        line = "" if number % 2 else f"word{number} no"
        producer.produce("lines", json.dumps({"line": line}), partition=number // 10)
    producer.flush()
    told = (tmp_path / "log").open("wb")
    program = subprocess.Popen(
        [sys.executable, "own_query.py", servers, str(tmp_path / "state")],
        cwd=EXAMPLES,
        env={**os.environ, "PYTHONPATH": str(EXAMPLES)},
        stdout=told,
        stderr=told,
        start_new_session=True,
    )
    try:
        found = consumed(servers, program, 10)
    finally:
        os.killpg(program.pid, signal.SIGTERM)
        try:
            program.wait(30)
        finally:
            with told:
                os.killpg(program.pid, signal.SIGKILL) if program.poll() is None else None
    assert sorted(found) == sorted(f"WORD{number}" for number in range(0, 20, 2))


def consumed(servers, program, number):
    """Return the words at the sink, once there are so many."""
    options = {"group.id": "test", "auto.offset.reset": "earliest"}
    consumer = Consumer({"bootstrap.servers": servers, **options})
    consumer.subscribe(["words.shout"])
    found, until_s = [], time.monotonic() + DEADLINE_S
    try:
        while len(found) < number:
            assert program.poll() is None
            assert time.monotonic() < until_s
            message = consumer.poll(0.2)
            if message is not None and message.error() is None:
                found.append(json.loads(message.value())["word"])
    finally:
        consumer.close()
    return found


@pytest.fixture
def source(broker, jars):
    session = new_session("stage", jars=jars, slots=4)
    reader = session.readStream.format("kafka").options(
        **Cluster(broker.bootstrap_servers).for_spark
    )
    yield reader.option("subscribe", "lines").option("includeHeaders", "true").load()
    end_session(session)


def test_what_is_not_one_row_for_each_offset_is_refused(source, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES)
    monkeypatch.setenv("PYTHONPATH", str(EXAMPLES))
    stage = Stage("own_query:words", state=tmp_path)
    with pytest.raises(EngineError, match="has no host; use it in a with statement"):
        stage(source)
    with stage:
        assert stage.running("shout") == 1
        assert stage(source.where("offset > 7").withColumn("value", sql.col("value"))).columns
        exploded = source.select("*", sql.explode(sql.array(sql.lit(1), sql.lit(2))))
        with pytest.raises(BadInput, match="has a step Generate, after which rows no longer"):
            stage(exploded)
        with pytest.raises(BadInput, match="has a step Repartition"):
            stage(source.repartition(2))
        with pytest.raises(BadInput, match="has no column headers; pass on all columns"):
            stage(source.drop("headers"))
        source.sparkSession.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "10000")
        with pytest.raises(BadInput, match=r"=10000, but a stage needs 1000;"):
            stage(source)


COUNTING = """
import sojourn as sj

app = sj.App("words")

@app.operator(reads=app.source("words", schema="word string").by("word"), state={"n": %s})
def count(state, word):
    state["n"] += 1
"""


def test_its_state_folder_is_that_of_an_application(tmp_path, monkeypatch):
    """`sojourn state` reads it, and what could not continue with it is refused."""
    monkeypatch.syspath_prepend(tmp_path)
    for name, default in (("counts", "0"), ("texts", "''")):
        (tmp_path / f"{name}_by_stage.py").write_text(COUNTING % default)
    with Stage("counts_by_stage:app", state=tmp_path / "state"):
        pass
    states = KeyStates(tmp_path / "state")
    assert (states.application, states.summary("count").keys) == ("words", 0)
    stage = Stage("texts_by_stage:app", state=tmp_path / "state")
    with pytest.raises(BadInput, match="field n was bigint, now it is string"), stage:
        pytest.fail("its host would be running")


def test_one_stage_at_a_time_uses_a_state(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "alone_in_stage.py").write_text(COUNTING % "0")
    stage, other = (Stage("alone_in_stage:app", state=tmp_path / "state") for _ in range(2))
    with stage, pytest.raises(EngineError, match=f"state.*pid {os.getpid()}.*stop it"), other:
        pytest.fail("two hosts would write one log")
    with other:
        pass


def test_a_query_with_another_checkpoint_than_that_of_the_state_fails(
    source, broker, tmp_path, monkeypatch
):
    monkeypatch.syspath_prepend(EXAMPLES)
    monkeypatch.setenv("PYTHONPATH", str(EXAMPLES))

    def started(stage, checkpoint):
        written = (
            stage(source)
            .writeStream.format("kafka")
            .options(**Cluster(broker.bootstrap_servers).for_spark, **Stage.OPTIONS)
            .option("checkpointLocation", str(checkpoint))
            .outputMode("update")
        )
        return written.trigger(realTime="5 seconds").start()

    def until(found):
        until_s = time.monotonic() + DEADLINE_S
        while not found():
            assert time.monotonic() < until_s
            time.sleep(0.1)

    with Stage("own_query:words", state=tmp_path / "state", batch_s=5) as stage:
        query = started(stage, tmp_path / "first")
        until((tmp_path / "first" / "commits" / "0").exists)
        query.stop()
        other = started(stage, tmp_path / "second")
        until(lambda: not other.isActive)
        assert f"belongs to the checkpoint with id {query.id}, and" in str(other.exception())
        again = started(stage, tmp_path / "first")
        until((tmp_path / "first" / "commits" / "1").exists)
        again.stop()

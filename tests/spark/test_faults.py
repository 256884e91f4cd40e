"""Whatever is killed, all results arrive; what is refused is refused before anything starts."""

from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Producer

from sojourn.app.loading import load
from sojourn.decide.plan import Plan
from sojourn.errors import ApplicationStopped, BadInput
from sojourn.spark.driver.kafka.cluster import Cluster
from sojourn.spark.driver.settings import SparkSettings
from sojourn.spark.driver.spark_engine import SparkEngine
from sojourn.spark.driver.state.checkpoints import Checkpoints
from sojourn.topology import Arrival, Operator, Topology
from sojourn_trial.applications import state_app, two_parts_app
from sojourn_trial.kills import commits as spark_commits
from sojourn_trial.kills import random_kills as spark_kills
from sojourn_trial.kills.schedule import drawn, rescales
from spark.loaded import Loaded, as_file, quiet

pytestmark = pytest.mark.spark
DEADLINE_S = 180.0
CHAIN = Topology(
    name="faults",
    arrivals=(Arrival(name="in", per_s=20.0, into="first"),),
    operators=(
        Operator(name="first", service_s=0.2, emits={"second": 1}),
        Operator(name="second", service_s=0.02, emits={"third": 1}),
        Operator(name="third", service_s=0.005),
    ),
)
ALLOCATION = {"first": 8, "second": 2, "third": 1}
ALL_BUT_SLOW = ("processor", "template", "host", "worker", "daemon", "driver")


@pytest.fixture(scope="module")
def loaded(servers, tmp_path_factory):
    return quiet(CHAIN, servers, tmp_path_factory.mktemp("loaded"))


@pytest.mark.timeout(600)
def test_whatever_is_killed_results_are_what_plain_python_makes_of_the_input(
    jars, short_folder
):
    with spark_kills.trial_in(short_folder, jars=jars) as trial:
        sending = spark_kills.sending(trial, 200)
        processors = trial.driver.victims("processor")
        processors[0].kill()
        assert trial.settle(lambda: set(trial.driver.victims("processor")) - set(processors))
        assert not any(trial.driver.health()["restarts"].values())  # its host deals with it
        spark_kills.kill(trial, drawn(4, kills=6, within_s=25.0, targets=ALL_BUT_SLOW))
        sending.join()
        found, health = spark_kills.settled(trial), trial.driver.health()
    assert not spark_kills.broken(found), {name: str(it) for name, it in found.items()}
    assert not trial.left  # of the driver that was killed
    assert not health["failure"]
    assert health["running"] == spark_kills.ALLOCATION


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("seed", range(1, 6))
def test_whatever_is_killed_and_whenever(jars, short_folder, seed):
    with spark_kills.trial_in(short_folder, jars=jars) as trial:
        sending = spark_kills.sending(trial, 1000)
        spark_kills.kill(trial, drawn(seed, kills=12, within_s=120.0))
        sending.join()
        found = spark_kills.settled(trial)
    assert not spark_kills.broken(found), {name: str(it) for name, it in found.items()}
    assert not trial.left


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_two_parts_are_exact_through_ten_rescales_and_kills_of_every_kind(
    jars, short_folder, record_property
):
    """At plain sinks a kill repeats no more than a batch of each query."""
    kills = drawn(1, kills=8, within_s=120.0)
    changes = rescales(1, two_parts_app.ALLOCATION, number=10, within_s=120.0)
    with spark_kills.trial_in(short_folder, app="two-parts", jars=jars) as trial:
        sending = spark_kills.sending(trial, 1000)
        spark_kills.kill(trial, [*kills, *changes])
        sending.join()
        found, most = spark_kills.settled(trial), spark_kills.most_twice(trial)
    shown = {name: str(it) for name, it in found.items()}
    record_property("found", str((shown, most)))
    assert not spark_kills.broken(found), shown
    assert all(found[name].twice.total() <= number for name, number in most.items()), shown
    assert not trial.left


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_two_writers_and_two_hops_are_exact_through_kills(jars, short_folder):
    """Two parts write one stream, which is counted behind a projection and another part."""
    with spark_kills.trial_in(short_folder, app="writers", jars=jars) as trial:
        sending = spark_kills.sending(trial, 900)
        kills = drawn(1, kills=8, within_s=90.0, targets=("host", "worker", "daemon", "driver"))
        spark_kills.kill(trial, kills)
        sending.join()
        found, wrong = spark_kills.settled(trial), spark_kills.wrong_states(trial)
    assert not wrong
    assert not spark_kills.broken(found), {name: str(it) for name, it in found.items()}
    assert not trial.left


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_states_of_keys_are_exact_through_ten_rescales_and_kills_of_every_kind(
    jars, short_folder
):
    """So are the counts at a deduplicated sink: each number once, for every key."""
    kills = drawn(1, kills=8, within_s=120.0)
    changes = rescales(1, state_app.ALLOCATION, number=10, within_s=120.0)
    with spark_kills.trial_in(short_folder, app="state", jars=jars) as trial:
        sending = spark_kills.sending(trial, 1000)
        spark_kills.kill(trial, [*kills, *changes])
        sending.join()
        found, wrong = spark_kills.settled(trial), spark_kills.wrong_states(trial)
    assert not wrong
    assert not spark_kills.broken(found), {name: str(it) for name, it in found.items()}
    assert not trial.left


@pytest.mark.slow
@pytest.mark.timeout(2400)
def test_killed_at_the_end_of_a_batch_it_loses_nothing_and_drained_it_repeats_nothing(
    jars, short_folder
):
    """With records that are in service for more than two batches, and so in two files."""
    ended = spark_commits.ran(short_folder, seed=1, runs=20, jars=jars)
    assert not ended.problems
    assert not ended.after.lost + ended.after.wrong
    assert ended.repeated == 0


def test_a_function_that_raises_stops_the_application_and_the_error_says_where(
    loaded, monkeypatch
):
    monkeypatch.syspath_prepend(Path(__file__).parent)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    app = load("stumbling:app")
    engine = SparkEngine(app, "stumbling:app", SparkSettings(servers=loaded.servers, batch_s=5))
    with engine:
        engine.start(app.topology({"numbers": 1.0}), Plan.here({"halve": 1}))
        producer = Producer({"bootstrap.servers": loaded.servers})
        for seed in (4, 7):
            producer.produce("stumbling.numbers", b'{"seed": %d}' % seed)
        producer.flush()
        with pytest.raises(ApplicationStopped, match="halve") as stopped:
            engine.observe(engine.now_s + DEADLINE_S)
        assert "stumbling.numbers/0/1" in str(stopped.value)
        assert "ValueError: 7 is odd" in str(stopped.value)
        assert engine.health().failure == str(stopped.value)


def test_fewer_slots_than_queries_hold_are_refused(loaded):
    engine = loaded.engine(slots=1)
    with pytest.raises(BadInput, match=r"has 1 slots, and 2 are needed .*; set slots to 2"):
        engine.start(CHAIN, Plan.here(ALLOCATION))
    assert engine.now_s == 0


def test_state_of_an_application_that_read_something_else_is_refused(loaded, tmp_path):
    state = tmp_path / "state"
    Checkpoints(state).keep(loaded.app, Cluster(loaded.servers).identity())
    changed = Topology(
        name=CHAIN.name,
        arrivals=tuple(replace(arrival, name="others") for arrival in CHAIN.arrivals),
        operators=CHAIN.operators,
    )
    address = as_file(changed, tmp_path)
    other = Loaded(load(address), address, loaded.servers)
    with pytest.raises(BadInput, match=r"first no longer reads topic .* use another state"):
        other.engine(state=state).start(changed, Plan.here(ALLOCATION))

"""An experiment's engine on Spark: faster than described, and nobody above can tell."""

import signal
import subprocess
import sys
import tempfile
import time
from itertools import accumulate
from pathlib import Path

import psutil
import pytest

from sojourn.decide.plan import Plan
from sojourn.decide.solution import NodeSize
from sojourn.errors import EngineError
from sojourn.measure.aggregate import aggregate
from sojourn.simulate.workload import Rates, Workload
from sojourn.topology import Arrival, Operator, Topology
from sojourn_papers.experiments.bench import Conditions
from sojourn_papers.experiments.machine_changes import MachinePool
from sojourn_papers.experiments.on_spark import on_spark

pytestmark = pytest.mark.spark

FASTER, MINUTE_S = 4.0, 8.0
CHAIN = Topology(
    name="chain",
    arrivals=(Arrival(name="lines", per_s=5, scv=0, into="a"),),
    operators=(
        Operator(name="a", service_s=0.4, service_scv=0, emits={"b": 1}),
        Operator(name="b", service_s=0.2, service_scv=0, transfer_s=1000.0),
    ),
)
STARTED, THEN = {"a": 4, "b": 3}, {"a": 7, "b": 3}
# The rate doubles after three minutes.
DOUBLES = Workload(rates={"lines": Rates.steps((0, 5), (3 * MINUTE_S, 10))})


def folders():
    return set(Path(tempfile.gettempdir()).glob("sojourn-reproduce-*"))


@pytest.fixture(scope="module")
def run(jars):  # noqa: ARG001 - skips where there is no Java
    """Look at six minutes, and change the allocation after the third."""
    before, looks, pulls = folders(), [], []
    engines = on_spark({"chain": FASTER}, lambda: looks.append(time.monotonic()))
    with engines(Conditions(workload=DOUBLES, seed=1)) as engine:
        with pytest.raises(EngineError, match="nothing is running"):
            engine.observe(1.0)
        engine.start(CHAIN, Plan.here(STARTED))
        assert engine.now_s == 0.0
        started_s = time.monotonic()
        with pytest.raises(EngineError, match="chain is already running"):
            engine.start(CHAIN, Plan.here(STARTED))
        for number in range(1, 7):
            pulls.append(engine.observe(engine.now_s + MINUTE_S))
            assert engine.now_s == number * MINUTE_S
            if number == 3:
                assert engine.plan.allocation == STARTED
                cost = engine.apply(Plan.here(THEN))
                assert engine.plan.allocation == THEN
    assert len(looks) == 6
    assert folders() == before
    return pulls, cost, [FASTER * (look_s - started_s) for look_s in looks]


def offered(until_s):
    """How many records the workload has sent by then."""
    return 5 * until_s + 5 * max(0.0, until_s - 3 * MINUTE_S)


def test_looks_follow_each_other_on_the_described_clock(run):
    pulls, _, _ = run
    for number, pull in enumerate(pulls):
        assert pull.since_s == pytest.approx(number * MINUTE_S)
        assert pull.at_s == pytest.approx((number + 1) * MINUTE_S)
        seen = aggregate(pull, CHAIN, every_s=MINUTE_S, last_s=pull.since_s)
        assert seen.usable, seen.reason


def test_as_much_comes_as_the_workload_says_and_when(run):
    """All counted: what came late in one look is in the next, and a look may be late itself."""
    pulls, _, looked_s = run
    entered = list(accumulate(pull.roots.entered for pull in pulls))
    for number, late_s in enumerate(looked_s):
        at_least, at_most = offered(number * MINUTE_S), offered(late_s + MINUTE_S / 4)
        assert 0.9 * at_least <= entered[number] <= 1.1 * at_most


def test_service_takes_as_long_as_described_and_the_machine_a_little_longer(run):
    pulls, _, _ = run
    for name, service_s in (("a", 0.4), ("b", 0.2)):
        reports = [r for pull in pulls for r in pull.operators if r.name == name]
        served = [p for report in reports for p in report.processors]
        mean_s = sum(p.service_s for p in served) / sum(p.sampled for p in served)
        assert service_s <= mean_s < 2 * service_s


def test_trees_take_as_long_as_their_records_and_not_as_long_as_the_wire(run):
    pulls, _, _ = run
    took = pulls[1].roots.completions + pulls[2].roots.completions
    assert 0.6 <= took.mean_s < 60


def test_nothing_pauses_where_processors_change(run):
    _, cost, _ = run
    assert (cost.pause_s, cost.changed) == (0.0, {"a": (4, 7)})


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_machines_come_and_go_with_the_processors(jars):  # noqa: ARG001 - skips without Java
    """Each is started for it, and nothing of any is left."""
    before = machine_folders()
    pool = MachinePool(nodes=NodeSize(slots=4), most=2)
    engines = on_spark({"chain": FASTER})
    with engines(Conditions(workload=Workload(), seed=1, pool=pool)) as engine:
        engine.start(CHAIN, Plan.here({"a": 3, "b": 1}))
        assert len(engine.nodes) == 1
        assert engine.machine_changes == ()
        (folder,) = machine_folders() - before
        assert commands_with(folder)
        seen = observed_until(engine, Plan.here({"a": 4, "b": 3}), 1)
        assert len(engine.nodes) == 2
        seen += observed_until(engine, Plan.here({"a": 3, "b": 1}), 2)
        assert len(engine.nodes) == 1
        added, removed = engine.machine_changes
        assert (added.kind, removed.kind) == ("added", "removed")
        assert 0 < added.ready_s <= added.took_s
        assert 0 < removed.ready_s <= removed.took_s
        assert 0 < added.at_s < removed.at_s <= engine.now_s
        assert sum(pull.roots.entered for pull in seen) > 0
    assert machine_folders() == before
    assert not commands_with(folder)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT])
def test_nothing_is_left_of_a_reproduction_that_is_ended(jars, tmp_path, end):  # noqa: ARG001
    before, out = machine_folders(), tmp_path / "out"
    sojourn = [sys.executable, "-m", "sojourn"]
    command = [*sojourn, "reproduce", "--engine", "spark", "drs15-fig10", "--out", str(out)]
    with (tmp_path / "output").open("w+") as output:
        running = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        try:
            until_s = time.monotonic() + 120
            while not (folder := next(iter(machine_folders() - before), None)) or not any(
                "CoarseGrainedExecutorBackend" in word
                for each in commands_with(folder)
                for word in each
            ):
                assert running.poll() is None, (tmp_path / "output").read_text()
                assert time.monotonic() < until_s
                time.sleep(0.2)
            running.send_signal(end)
            assert running.wait(timeout=120) == 130
        finally:
            running.kill()
    assert "Traceback" not in (tmp_path / "output").read_text()
    assert machine_folders() == before
    assert not commands_with(folder)


def observed_until(engine, plan, changes):
    """Apply a plan, and return the looks until so many machines have changed."""
    engine.apply(plan)
    pulls, until_s = [], time.monotonic() + 180
    while len(engine.machine_changes) < changes:
        assert time.monotonic() < until_s
        pulls.append(engine.observe(engine.now_s + MINUTE_S))
    return pulls


def machine_folders():
    return set(Path(tempfile.gettempdir()).glob("sojourn-machines-*"))


def commands_with(folder):
    """Return the commands of processes that are told of a folder."""
    commands = [each.info["cmdline"] or () for each in psutil.process_iter(["cmdline"])]
    return [command for command in commands if any(str(folder) in word for word in command)]

"""`sojourn run` as a user starts and ends it, on an engine that takes no Spark."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest
from typer.testing import CliRunner

import processes
import sojourn as sj
from live_engine import Launches, LiveSimulator
from small_disk import SmallDisk, mounted
from sojourn.app.loading import load
from sojourn.cli import app
from sojourn.engine import Health
from sojourn.errors import BadFile, BadInput
from sojourn.history import read_episodes, read_run
from sojourn.service import engines as registry
from sojourn.service.engines import launcher
from sojourn.service.state_folder import LastAllocation
from sojourn.service.supervisor import Supervisor
from sojourn.spark.driver.settings import SparkSettings, read_client_options

TESTS = Path(__file__).parents[2]
VLD = str(TESTS.parent / "examples" / "vld.yaml")
GOAL = ("--target-mean", "2s", "--max-processors", "25")
# Turns are shorter than by default, so that tests need not wait for them.
EVERY = ("--every", "1s")


@pytest.fixture(autouse=True)
def own(places):
    """Come before all that writes there."""
    return places


@pytest.fixture
def engines(monkeypatch):
    """Let the command run on the simulator where it says Spark; return what makes engines."""
    launches = Launches()
    monkeypatch.setattr("live_engine.launch", launches)
    monkeypatch.setitem(registry._OURS, "spark", ("live_engine", ""))  # noqa: SLF001
    return launches


def run(*arguments):
    return CliRunner().invoke(app, ["run", VLD, *GOAL, *EVERY, *map(str, arguments)])


def command(*arguments):
    return CliRunner().invoke(app, list(arguments))


@contextmanager
def started(*arguments):
    """Run it in a process of its own, and wait until it is ready."""
    with processes.started(
        [
            sys.executable, "-m", "sojourn", "run", VLD, *GOAL, *EVERY, "--engine", "simulator",
            *arguments,
        ],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
    ) as process:  # fmt: skip
        lines = iter(process.stdout.readline, "")
        assert any("pid" in line for line in lines), process.stderr.read()
        yield process


# -- until it is time --------------------------------------------------------------------------


def test_it_runs_for_as_long_as_it_is_told_and_is_drained(engines):
    done = run("--for", "20s")
    assert done.exit_code == 0, done.output
    head, where, _sources, _sinks, how, empty, first, *_ = done.stdout.splitlines()
    assert head == "vld · drs, mean ≤ 2 s, at most 25 processors"
    assert re.fullmatch(r"running, pid \d+; Kafka at 127.0.0.1:9092; state in .*/vld", where)
    assert how.startswith("Ctrl-C: finish the current batch, then exit.")
    assert empty == ""
    assert re.match(r"0:00:01  up    1:1:1 -> \d+:\d+:1  extract, match cannot keep up", first)
    assert "waiting for the batch of extract to end\ndrained\n" in done.stderr
    assert "turns       20 in 0:00:20" in done.stdout
    engine = engines.of(0)
    assert (engine.drained, engine.stopped) == (True, True)


VLD_MODULE = "vld_to_feed:app"


@pytest.fixture
def vld_module(tmp_path, monkeypatch):
    """Return the address of an application of the name that has a sample."""
    (tmp_path / "vld_to_feed.py").write_text(
        "import sojourn as sj\n"
        "app = sj.App('vld')\n"
        "frames = app.source('frames', schema='n int', samples=lambda seed: [(seed,)])\n"
        "@app.operator(reads=frames)\n"
        "def show(n):\n"
        "    print(n)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    return VLD_MODULE


class Slow(LiveSimulator):
    """Tells what commands say while it starts, and what is missing afterwards."""

    said: dict[str, str]
    waits_for = "waiting for the first records of frames[0]"

    def start(self, topology, plan):
        super().start(topology, plan)
        said = {each: command(*each.split()) for each in ("ps", "ps --json", "top --once")}
        type(self).said = {each: done.stdout for each, done in said.items()}
        type(self).refused = command("top", "--json")
        type(self).fed = command("feed", VLD_MODULE, "--rate", "3")

    def health(self):
        return Health(waits_for=self.waits_for if self.now_s < 3 else "")


@pytest.fixture
def slow(monkeypatch):
    def launch(_app, _address, _settings, _state, progress):
        progress("waiting for executors of Spark")
        return Slow()

    monkeypatch.setattr("live_engine.launch", launch)
    monkeypatch.setitem(registry._OURS, "spark", ("live_engine", ""))  # noqa: SLF001
    return Slow


@pytest.mark.usefixtures("vld_module")
def test_while_it_starts_commands_say_what_it_waits_for(slow):
    assert run("--for", "1s").exit_code == 0
    assert "waiting for executors of Spark" in slow.said["ps"]
    (row,) = json.loads(slow.said["ps --json"])["applications"]
    assert (row["name"], row["status"]) == ("vld", "starting")
    assert row["waits_for"] == "waiting for executors of Spark"
    assert slow.said["top --once"].startswith("vld · pid ")
    assert "· starting: waiting for executors of Spark" in slow.said["top --once"]
    assert slow.refused.exit_code == 3
    waits = "vld is starting: waiting for executors of Spark; try again when it is running"
    assert waits in slow.refused.stderr
    assert (slow.fed.exit_code, waits in slow.fed.stderr) == (3, True)


def test_a_feed_without_its_application_says_how_to_reach_kafka(vld_module):
    done = command("feed", vld_module, "--rate", "3")
    assert done.exit_code == 3
    assert "no application 'vld' is running; `sojourn run` starts one. If it has" in done.stderr
    assert "add --bootstrap-servers HOST:PORT; its own broker" in done.stderr
    assert "--app" not in done.stderr


def test_it_is_starting_until_records_are_read(slow):
    done = run("--for", "6s")
    assert f"starting ({slow.waits_for}), pid " in done.stdout
    assert "running" not in done.stdout
    assert "running: records are read from all partitions\n" in done.stderr
    events = [json.loads(line) for line in run("--for", "6s", "--json").stdout.splitlines()]
    (ready,) = [event for event in events if event["event"] == "ready"]
    assert ready["waits_for"] == slow.waits_for
    assert [event["text"] for event in events if event["event"] == "notice"] == [
        "running: records are read from all partitions"
    ]


@pytest.mark.usefixtures("engines")
def test_the_state_has_the_history(tmp_path):
    assert run("--for", "3s").exit_code == 0
    path = tmp_path / "s" / "sojourn" / "state" / "vld" / "history"
    assert len(list(read_episodes(path))) == 3
    _, begun = read_run(path)
    assert (begun.policy, begun.target) == (
        "drs, mean ≤ 2 s, at most 25 processors",
        sj.Target("mean", 2.0),
    )
    assert run("--for", "2s", "--passive", "--history", tmp_path / "own").exit_code == 0
    number, begun = read_run(tmp_path / "own")
    assert (number, begun.policy[-19:]) == (1, ", only recommending")


@pytest.mark.usefixtures("engines")
def test_json_is_an_event_on_each_line():
    done = run("--for", "20s", "--json")
    first, *changes, waiting, drained, last = map(json.loads, done.stdout.splitlines())
    assert first["event"] == "ready"
    assert first["allocation"] == {"extract": 1, "match": 1, "aggregate": 1}
    assert {change["event"] for change in changes} == {"change"}
    assert list(changes[0]) == [
        "event", "at_s", "kind", "before", "after", "carried_out", "reason", "failure",
    ]  # fmt: skip
    assert (waiting["event"], drained["text"]) == ("progress", "drained")
    assert (last["event"], last["turns"], last["changes"]) == ("end", 20, len(changes))


@pytest.mark.usefixtures("engines")
def test_what_it_may_have_at_most_and_a_target_below_the_floor_are_said_at_the_start(
    monkeypatch,
):
    """It used to ask for ever more processors, and never to say why that is of no use."""
    monkeypatch.setattr("os.sched_getaffinity", lambda _pid: {0, 1})
    done = command("run", VLD, "--target-p95", "2s", "--for", "3s")
    assert done.exit_code == 0, done.output
    head, _, _sources, _sinks, bound, floor, *_ = done.stdout.splitlines()
    assert "p95 ≤ 2 s, at most 32 processors" in head
    assert bound == "note: at most 32 processors (16 per core; --max-processors changes it)"
    assert floor.startswith("note: no number of processors reaches p95 ≤ 2 s: without any")
    told = json.loads(
        command("run", VLD, "--target-p95", "3s", "--for", "1s", "--json").stdout.split("\n")[0]
    )
    assert (told["max_processors"], len(told["notes"])) == (32, 1)


@pytest.mark.usefixtures("engines")
def test_it_starts_with_what_it_is_told():
    done = run(
        "--for", "1s", "--start", "match=9", "--start", "extract=8,aggregate=2", "--json"
    )
    first = json.loads(done.stdout.splitlines()[0])
    assert first["allocation"] == {"extract": 8, "match": 9, "aggregate": 2}
    assert first["begins_with"] == "extract=8, match=9, aggregate=2 (--start)"


@pytest.mark.usefixtures("engines")
def test_it_begins_with_what_the_run_before_had_unless_it_is_fresh(tmp_path):
    state = tmp_path / "state"

    def begun(*arguments):
        LastAllocation(state).save({"extract": 12, "match": 9, "gone": 4})
        (state / "run.json").write_text('{"application": "vld"}')
        done = run("--for", "1s", "--json", "--state", state, *arguments)
        return json.loads(done.stdout.splitlines()[0])

    assert begun()["allocation"] == {"extract": 12, "match": 9, "aggregate": 1}
    assert begun()["begins_with"] == (
        "extract=12, match=9 (as in the last run); aggregate=1 (min_processors)"
    )
    told = begun("--start", "match=14")
    assert told["allocation"] == {"extract": 10, "match": 14, "aggregate": 1}
    assert told["begins_with"] == (
        "match=14 (--start); extract=10 (as in the last run, within the current bounds); "
        "aggregate=1 (min_processors)"
    )
    assert begun("--fresh")["allocation"] == {"extract": 1, "match": 1, "aggregate": 1}


def test_each_start_begins_with_the_allocation_that_the_run_before_ended_with(engines):
    """Whatever changed it: here the loop."""
    run("--for", "5s")
    ended = engines.of(0).plan.allocation
    assert ended != {"extract": 1, "match": 1, "aggregate": 1}
    told = json.loads(run("--for", "1s", "--json").stdout.splitlines()[0])
    assert told["allocation"] == ended


@pytest.mark.usefixtures("engines")
def test_that_the_processors_of_now_cannot_be_saved_is_said_once(tmp_path):
    state = tmp_path / "state"
    run("--for", "1s", "--passive", "--state", state)
    (state / "allocation.json.new").mkdir()  # where its next version is written
    done = run("--for", "5s", "--state", state)
    assert done.exit_code == 0, done.output
    why = f"{state / 'allocation.json'} cannot be written: Is a directory; check {state}"
    assert (
        done.stderr.count(f"the current processors are not saved for the next start: {why}\n")
        == 1
    )


def test_passive_it_changes_nothing(engines):
    done = run("--for", "5s", "--passive")
    assert "up advised  1:1:1 -> " in done.stdout
    assert "; it was started to recommend only" in done.stdout
    assert engines.of(0).plan.allocation == {"extract": 1, "match": 1, "aggregate": 1}


def test_options_reach_the_engine_and_secrets_nobody_else(engines, tmp_path):
    secrets = tmp_path / "kafka.properties"
    secrets.write_text("# ours\n\nsasl.password = hunter2=\nsecurity.protocol=SSL\n")
    done = run(
        "--for", "1s", "--kafka-options", secrets,
        "--kafka-option", "security.protocol=SASL_SSL",
        "--bootstrap-servers", "k:9092", "--batch", "30s", "--state", tmp_path / "here",
        "--starting-offsets", "2026-01-31T12:00:00Z", "--kafka-patience", "2m",
        "--relay-timeout", "20s", "--shared-state", "file:///nfs/orders",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    application, address, options, state = engines.made[0][1]
    assert (application.name, address, state) == ("vld", VLD, tmp_path / "here")
    assert options.kafka == {"sasl.password": "hunter2=", "security.protocol": "SASL_SSL"}
    assert (options.servers, options.batch_s) == ("k:9092", 30.0)
    assert (options.starting, options.patience_s) == (1769860800.0, 120.0)
    assert (options.relay_timeout_s, options.shared_state) == (20.0, Path("/nfs/orders"))
    assert "hunter2" not in done.output + repr(options)
    written = [path for path in tmp_path.rglob("*") if path.is_file() and path != secrets]
    assert not any(b"hunter2" in path.read_bytes() for path in written)


def test_a_port_is_for_a_broker_of_its_own(engines):
    assert run("--for", "1s", "--broker-port", 9092).exit_code == 0
    assert engines.made[0][1][2].broker_port == 9092
    done = run("--broker-port", 9092, "--bootstrap-servers", "k:9092")
    assert done.exit_code == 2
    assert "--bootstrap-servers k:9092 names another; leave out one of them" in done.stderr


def test_spark_runs_where_the_master_is(engines, tmp_path):
    module = tmp_path / "shop.py"
    module.touch()
    conf = ("--conf", "spark.executor.cores=4", "--conf", "spark.executor.memory=2g")
    done = run("--for", "1s", "--master", "spark://left:7077", *conf, "--py-files", module)
    assert done.exit_code == 0
    made = engines.made[0][1][2]
    assert made.master == "spark://left:7077"
    assert made.spark == {"spark.executor.cores": "4", "spark.executor.memory": "2g"}
    assert made.py_files == (module,)
    assert not made.encrypt
    assert (
        run("--for", "1s", "--master", "spark://left:7077", *conf, "--encrypt").exit_code == 0
    )
    assert engines.made[1][1][2].encrypt


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--master", "left:7077"), "'left:7077' is not a master of Spark; write local"),
        (("--master", "yarn"), "write --conf spark.executor.cores=4"),
        (("--conf", "spark.task.maxFailures=4"), "spark.task.maxFailures is set by Sojourn"),
        (("--conf", "spark.master=yarn"), "write --master"),
        (("--py-files", "nosuch.zip"), "nosuch.zip: there is no such file"),
        (("--max-nodes", "3"), "--max-nodes 3 needs a cluster, but --master is local; leave"),
        (("--state", "s3a://bucket/x"), "'s3a://bucket/x' is not on a file system"),
        (("--encrypt",), "--encrypt needs a cluster, but --master is local; leave it out, or"),
    ],
)
@pytest.mark.usefixtures("engines")
def test_a_master_that_cannot_be_is_refused_before_anything_starts(arguments, problem):
    done = run(*arguments)
    assert done.exit_code == 2
    assert problem in " ".join(done.stderr.split())


@pytest.mark.usefixtures("engines")
def test_what_somebody_should_know_is_said_once(monkeypatch):
    notices = iter([(), ("no broker answers",), ("no broker answers",), (), ()])

    def health(_self):
        return Health(notices=next(notices, ()))

    monkeypatch.setattr(LiveSimulator, "health", health)
    monkeypatch.setattr(Supervisor, "_look", lambda self: self._loop.look())
    monkeypatch.setattr(LiveSimulator, "client_properties", "client.properties")
    monkeypatch.setattr(LiveSimulator, "client_settings", "client.json")
    done = run("--for", "8s")
    assert done.stderr.count("no broker answers") == 1
    assert (
        "sources: frames (topic vld.frames)\n"
        "sinks: seen (topic vld.aggregate)\n"
        "client properties for Kafka's tools: client.properties\n"
        "client settings for confluent-kafka: client.json\n"
    ) in done.stdout
    notices = iter([("no broker answers",)] * 3)
    events = [json.loads(line) for line in run("--for", "8s", "--json").stdout.splitlines()]
    assert [e["text"] for e in events if e["event"] == "notice"] == ["no broker answers"]
    assert events[0]["client_properties"] == "client.properties"
    assert events[0]["client_settings"] == "client.json"
    assert (events[0]["sources"], events[0]["sinks"]) == (
        {"frames": "vld.frames"},
        {"seen": "vld.aggregate"},
    )


@pytest.mark.usefixtures("engines")
def test_fresh_forgets_first_what_the_engine_keeps_elsewhere(tmp_path, monkeypatch):
    """If it fails after that, the next start finds that something is missing."""
    state, there = tmp_path / "state", []
    run("--for", "1s", "--state", state)
    (state / "checkpoints").mkdir()

    class Forgetful(LiveSimulator):
        def forget(self):
            there.append((state / "checkpoints").exists())

    monkeypatch.setattr("live_engine.LiveSimulator", Forgetful)
    run("--for", "1s", "--state", state)
    assert there == []
    assert run("--for", "1s", "--state", state, "--fresh").exit_code == 0
    assert there == [True]


@pytest.mark.usefixtures("engines")
def test_fresh_forgets_what_was_done_before(tmp_path):
    state = tmp_path / "state"
    run("--for", "1s", "--state", state)
    (state / "checkpoints").mkdir()
    run("--for", "1s", "--state", state)
    assert (state / "checkpoints").exists()
    assert run("--for", "1s", "--state", state, "--fresh").exit_code == 0
    assert not (state / "checkpoints").exists()
    assert len(list(read_episodes(state / "history"))) == 1
    assert read_run(state / "history")[0] == 3


@pytest.mark.usefixtures("engines")
def test_drawn_live_it_shows_the_last_minutes():
    """What is not a terminal gets the last picture alone."""
    done = run("--for", "20s", "--live")
    assert done.exit_code == 0
    assert "sends to" in done.stdout
    assert re.search(r"0:00:00 +0:01:00", done.stdout)
    done = run("--for", "700s", "--every", "10s", "--live")
    assert re.search(r"0:01:40 +0:11:40", done.stdout)


# -- what cannot be ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--start", "match"), "'match' is not OPERATOR=PROCESSORS"),
        (("--start", "votes=2"), "there is no operator 'votes'"),
        (("--start", "match=40"), "42 processors in all is above the maximum, 25"),
        (("--max-processors", "2"), "the maximum is 2 processors, and the operators need 3"),
        (("--every", "0s"), "--every 0s is not positive"),
        (("--for", "0s"), "--for 0s is not positive"),
        (("--policy", "hpa"), "unknown policy 'hpa'"),
        (("--placement", "nowhere"), "unknown placer 'nowhere'"),
        (
            ("--policy", "ds2", "--forecast"),
            "--forecast: ds2 has no option 'forecast'; it has scaling_factor",
        ),
        (("--starting-offsets", "soon"), "'soon' is not a start"),
        (
            ("--starting-offsets", "2026-01-31T12:00"),
            "has no time zone; write 2026-01-31T12:00Z",
        ),
        (("--kafka-option", "hunter2"), "--kafka-option number 1 is not key=value"),
        (("--target-p95", "1s"), "are both given; write one"),
    ],
)
def test_bad_input_is_refused_before_anything_is_started(engines, arguments, said):
    done = run(*arguments)
    assert (done.exit_code, said in done.stderr) == (2, True), done.output
    assert "hunter2" not in done.output
    assert engines.made == []


@pytest.mark.usefixtures("engines")
def test_without_a_target_it_says_what_to_write():
    done = command("run", VLD)
    assert (done.exit_code, "write --target-p95" in done.stderr) == (2, True)


@pytest.mark.usefixtures("engines")
def test_an_application_that_is_not_there_is_named():
    done = command("run", "no.such:app", *GOAL)
    assert (done.exit_code, "no.such:app: importing no.such failed" in done.stderr) == (2, True)


def test_options_in_a_file_that_cannot_be_are_refused_without_showing_them(tmp_path):
    with pytest.raises(BadFile, match="cannot be read"):
        read_client_options([], tmp_path / "none")
    (tmp_path / "odd").write_text("a=b\nhunter2\n")
    with pytest.raises(BadInput, match="odd:2 is not key=value") as refused:
        read_client_options([], tmp_path / "odd")
    assert "hunter2" not in str(refused.value)
    (tmp_path / "bytes").write_bytes(b"\xff\xff")
    with pytest.raises(BadFile, match="is not UTF-8"):
        read_client_options([], tmp_path / "bytes")


def test_without_spark_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "sojourn.spark.driver.spark_engine", None)
    done = run("--for", "1s")
    assert done.exit_code == 3
    assert "which is not installed; install sojourn[spark]" in done.stderr
    assert command("ps").stdout == "no application is running\n"


def test_without_java_it_says_so(monkeypatch, tmp_path):
    pytest.importorskip("pyspark")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    done = run("--for", "1s")
    assert done.exit_code == 3
    assert "Java 17 or newer is required" in done.stderr


@pytest.mark.usefixtures("engines")
def test_a_history_that_cannot_be_written_any_more_does_not_end_what_runs(monkeypatch):
    def full(_history, _episode):
        raise BadFile("history", "cannot be written: disk full", "check the disk")

    monkeypatch.setattr("sojourn.history.HistoryFile.append", full)
    done = run("--for", "5s")
    assert done.exit_code == 0
    assert done.stderr.count("the history ends here: history: cannot be written") == 1
    assert "turns       5 in" in done.stdout


@pytest.mark.usefixtures("engines")
def test_a_disk_that_fills_up_holds_up_the_history_and_not_what_runs(small_disk):
    done = run("--for", "150s", "--state", small_disk / "state")
    assert done.exit_code == 0, done.output
    assert done.stderr.count("the history waits for disk space: ") == 1
    assert f"No space left on device; make room in {small_disk / 'state'}" in done.stderr
    assert "turns       150 in" in done.stdout
    assert list(read_episodes(small_disk / "state" / "history"))


class Elsewhere(LiveSimulator):
    """Beside it somebody fills a disk, and makes room again."""

    disk: SmallDisk

    def observe(self, until_s):
        if until_s in (20, 60):
            self.disk.fill() if until_s == 20 else self.disk.free()
        return super().observe(until_s)


@pytest.mark.usefixtures("engines")
def test_a_history_that_waited_for_room_has_all_turns(tmp_path, monkeypatch):
    with mounted(tmp_path / "disk", 4 << 20) as disk:
        monkeypatch.setattr(Elsewhere, "disk", disk, raising=False)
        monkeypatch.setattr("live_engine.LiveSimulator", Elsewhere)
        done = run("--for", "90s", "--state", disk.folder / "state")
        assert done.exit_code == 0, done.output
        assert done.stderr.count("the history waits for disk space: ") == 1
        assert done.stderr.count("the history continues: disk space is available again") == 1
        turns = read_episodes(disk.folder / "state" / "history")
        assert [turn.observation.at_s for turn in turns] == list(range(1, 91))


# -- how it ends -------------------------------------------------------------------------------


def test_an_application_that_stops_is_status_1_with_the_reason(engines):
    engines.options["stops_at_s"] = 4.0
    done = run()
    assert done.exit_code == 1
    assert "sojourn: vld stopped: split: a record failed: ValueError: seven" in done.stderr
    engine = engines.of(0)
    assert (engine.drained, engine.stopped) == (False, True)


def test_what_cannot_be_drained_is_status_1(engines):
    engines.options["drain_s"] = -1
    done = run("--for", "1s")
    assert done.exit_code == 1
    assert (
        "the current batches were not finished: extract: the batch did not end" in done.stderr
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("every", ["100ms", "30s"])
def test_a_signal_lets_it_end_what_was_begun(number, every):
    """Also while it waits for a look that is far away."""
    with started("--every", every, "--start", "extract=12,match=12") as process:
        process.send_signal(number)
        said, error = process.communicate(timeout=60)
    assert process.returncode == 0, error
    assert "drained" in error
    assert "turns " in said
    assert "Traceback" not in error


def test_a_second_one_stops_it_at_once():
    with started("--passive") as process:
        time.sleep(2)  # in which 26 records arrive for a processor that can do 4
        process.send_signal(signal.SIGINT)
        assert process.stderr.readline() == (
            "starting vld on the simulator with extract=1, match=1, aggregate=1 "
            "(min_processors) …\n"
        )
        assert re.fullmatch(r"waiting for \d+ roots in flight\n", process.stderr.readline())
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=60)
    assert process.returncode == 130
    assert error == "vld was interrupted\n"


@pytest.mark.usefixtures("engines")
def test_a_second_run_of_the_name_is_refused():
    with started() as process:
        done = run("--for", "1s")
        assert done.exit_code == 3
        assert f"vld is already running, pid {process.pid}" in done.stderr
    assert run("--for", "1s").exit_code == 0  # the first was killed: what it left is cleaned


# -- signals, in the middle of things ----------------------------------------------------------


def interrupt(times=1):
    try:
        os.kill(os.getpid(), signal.SIGINT)
    finally:
        if times > 1:
            interrupt(times - 1)


def test_a_signal_while_it_looks_is_not_waited_with(engines):
    engines.options["raises"] = lambda now_s: interrupt() if now_s >= 3 else None
    done = run()
    assert done.exit_code == 0, done.output
    assert "turns       3 in" in done.stdout
    assert engines.of(0).drained
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_signal_while_processors_are_changed_waits_until_they_are(engines, monkeypatch):
    apply = LiveSimulator.apply

    def interrupted(engine, plan):
        interrupt()
        return apply(engine, plan)

    monkeypatch.setattr(LiveSimulator, "apply", interrupted)
    done = run()
    assert done.exit_code == 0, done.output
    assert "changes     1: 1 up" in done.stdout
    assert engines.of(0).plan.allocation["match"] > 1


def test_two_signals_stop_it_wherever_it_is(engines, monkeypatch):
    engines.options["raises"] = lambda _now_s: interrupt(2)
    done = run()
    assert done.exit_code == 130
    assert "vld was interrupted; 7 records are repeated at the next start" in done.stderr
    monkeypatch.setattr(LiveSimulator, "apply", lambda *_: interrupt(2))
    engines.options["raises"] = None
    assert run().exit_code == 130
    assert [(engine.drained, engine.stopped) for engine, _ in engines.made] == [
        (False, True)
    ] * 2


def test_one_signal_ends_a_start_that_takes_long(engines, monkeypatch):
    monkeypatch.setattr(LiveSimulator, "start", lambda *_: interrupt())
    assert run().exit_code == 130
    assert engines.of(0).stopped
    assert command("ps").stdout == "no application is running\n"


def test_one_signal_is_enough_while_it_is_drained_anyway(engines, monkeypatch):
    monkeypatch.setattr(LiveSimulator, "drain", lambda *_: interrupt())
    assert run("--for", "2s").exit_code == 130
    assert engines.of(0).stopped


@pytest.mark.usefixtures("engines")
def test_no_signal_cuts_the_stopping_short(monkeypatch):
    stopped = []

    def stop(_engine):
        interrupt(2)
        stopped.append(True)

    monkeypatch.setattr(LiveSimulator, "stop", stop)
    assert run("--for", "2s").exit_code == 0
    assert stopped == [True]


# -- beside it ---------------------------------------------------------------------------------


def test_metrics_are_served_while_it_runs(engines):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    got = []

    def scrape(now_s):
        if now_s == 2.0:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answered:
                got.append(answered.read().decode())

    engines.options["raises"] = scrape
    assert run("--for", "3s", "--prometheus", port).exit_code == 0
    assert 'sojourn_changes_total{app="vld"} 1' in got[0]


def test_a_port_that_is_taken_is_told_before_anything_is_started(engines):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = run("--for", "1s", "--prometheus", taken.getsockname()[1])
    assert done.exit_code == 3
    assert "choose another with --prometheus" in done.stderr
    assert engines.made == []


def test_what_is_done_by_hand_is_shown_and_in_the_history(engines, tmp_path):
    """Also where it is drawn, with what is aimed at from then on."""
    told = {3.0: ("set", "--target-p95", "5s"), 4.0: ("scale", "match=3")}
    done = []

    def by_hand(now_s):
        if now_s in told:
            done.append(command(*told.pop(now_s)).exit_code)

    engines.options["raises"] = by_hand
    ran = run("--for", "8s", "--live", "--history", tmp_path / "own")
    assert done == [0, 0]
    assert "p95 ≤ 5 s" in ran.stdout
    assert "0:00:08  paused: processors were set by hand" in ran.stdout
    assert "set by hand with `sojourn scale`" in ran.stdout
    told = [e for e in read_episodes(tmp_path / "own") if not e.looked]
    assert [e.decision.reason.split(" by ")[0].split(":")[0] for e in told] == [
        "set with `sojourn set`", "set",
    ]  # fmt: skip
    assert {str(e.target) for e in told} == {"p95 ≤ 5 s"}


def test_the_summary_of_a_run_and_its_history_judge_each_turn_by_its_own_target(
    engines, tmp_path
):
    """After `set` they used to differ, because the history went by the first target."""
    told = {4.0: ("set", "--target-mean", "1us")}

    def by_hand(now_s):
        if now_s in told:
            command(*told.pop(now_s))

    engines.options["raises"] = by_hand
    ran = run("--for", "8s", "--history", tmp_path / "own")
    judged = [line for line in ran.stdout.splitlines() if "above it in" in line]
    assert judged[0].startswith("target      mean ≤ 2 s: above it in 0 of ")
    assert judged[1] == "            mean ≤ 1e-06 s: above it in 4 of 4 turns"
    read_again = command("history", str(tmp_path / "own")).stdout
    assert [line for line in read_again.splitlines() if "above it in" in line] == judged
    assert re.search(r" note +set with `sojourn set`.*: drs, mean ≤ 1e-06 s", read_again)
    told = json.loads(command("history", str(tmp_path / "own"), "--json").stdout)["summary"]
    assert [target["seconds"] for target in told["targets"]] == [2.0, 1e-6]
    assert told["above_target"] == 4


def test_a_loop_that_fails_is_told_and_in_the_history(engines, tmp_path):
    looks = count()
    engines.options["raises"] = lambda _now_s: (
        KeyError("a bug") if next(looks) in (2, 3) else None
    )
    done = run("--for", "6s", "--json", "--history", tmp_path / "own")
    assert done.exit_code == 0
    events = [json.loads(line)["event"] for line in done.stdout.splitlines()]
    assert events.count("failure") == 2
    failures = [episode.failure for episode in read_episodes(tmp_path / "own")]
    assert failures.count("KeyError: 'a bug'") == 2
    assert len(failures) == 8


MODULE = """
import sojourn as sj
app = sj.App("here")

@app.operator(reads=app.source("lines", schema="line string"), emits="line string")
def same(line):
    yield (line,)

app.sink(same)
"""


def test_an_application_is_found_where_the_command_is_started(engines, tmp_path, monkeypatch):
    (tmp_path / "app_of_a_test.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path])
    done = command("run", "app_of_a_test:app", *GOAL, "--for", "2s")
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("here · drs")
    assert engines.made[0][1][1] == "app_of_a_test:app"


@pytest.mark.spark
def test_with_all_installed_the_engine_is_that_of_spark(tmp_path):
    spark = pytest.importorskip("sojourn.spark.driver.spark_engine")
    settings = SparkSettings(servers="k:9092", batch_s=30.0, starting="latest")
    engine = launcher("spark")(load(VLD), VLD, settings, tmp_path, print)
    assert isinstance(engine, spark.SparkEngine)


@pytest.mark.usefixtures("engines")
def test_a_slice_that_missed_the_target_is_told():
    done = command(
        "run", VLD, "--target-p95", "50ms", "--policy", "static", "--slice", "2s", "--every",
        "0.5s", "--for", "5s",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert re.search(r"p95 ≤ 0\.05 s was missed from 0 s to 2 s: \d+ of \d+ roots", done.stderr)
    assert re.search(r"kept +0 of \d slices of 2 s, 99% are required", done.stdout)

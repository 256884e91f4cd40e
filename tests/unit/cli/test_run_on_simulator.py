"""`sojourn run --engine simulator` as a user has it: in real time, steered from elsewhere."""

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
from importlib import import_module
from pathlib import Path

import pytest
from typer.testing import CliRunner

import processes
from sojourn.cli import app
from sojourn.history import read_episodes
from sojourn.service.control import stop
from sojourn.service.folders import find

VLD = str(Path(__file__).parents[3] / "examples" / "vld.yaml")
MODULE = """
import sojourn as sj
app = sj.App("here")

@app.operator(reads=app.source("lines", schema="line string"), emits="line string", name="same")
def same(line):
    yield (line,)

app.sink(same)
"""


@pytest.fixture(autouse=True)
def own(places):
    """Come before all that writes there."""
    return places


def said(*arguments):
    done = CliRunner().invoke(app, list(map(str, arguments)))
    assert done.exit_code == 0, done.output
    return done.stdout


def refused(*arguments):
    done = CliRunner().invoke(app, ["run", *map(str, arguments), "--target-p95", "3s"])
    assert done.exit_code == 2, done.output
    return done.stderr


def status():
    return json.loads(said("top", "--json"))


def until(holds, seconds=30):
    """Return what is true in the end, of what is looked at again and again."""
    end_s = time.monotonic() + seconds
    while time.monotonic() < end_s:
        if found := holds():
            return found
        time.sleep(0.05)
    raise AssertionError("it never came true")


@contextmanager
def started(*arguments, address=VLD, **options):
    with processes.started(
        [
            sys.executable, "-m", "sojourn", "run", address, "--engine", "simulator",
            "--target-p95", "3s", "--max-processors", "25", "--every", "200ms", *arguments,
        ],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", **options,
    ) as process:  # fmt: skip
        head = [process.stdout.readline() for _ in range(2)]
        assert "pid" in head[1], process.stderr.read()
        yield process


def test_a_simulated_application_is_steered_from_another_terminal(tmp_path):
    """All that is done to one on Spark: watched, changed, paused, ended, looked back on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with started("--prometheus", str(port)) as process:
        listed = json.loads(said("ps", "--json"))["applications"]
        assert [(row["name"], row["pid"]) for row in listed] == [("vld", process.pid)]
        # it begins with one processor each, which cannot keep up
        until(lambda: status()["changes"])
        assert "the loop decides every 0.2 s" in said("top", "--once")
        assert "match" in said("scale", "match=12", "extract=12")
        told = until(lambda: (s := status())["operators"]["match"]["running"] == 12 and s)
        assert (told["deciding"], told["why"]) == ("paused", "processors were set by hand")
        assert told["inner_topics"] == {"records": None, "bytes": None}
        assert "topics between" not in said("top", "--once")
        assert "p95 ≤ 2.5 s" in said("set", "--target-p95", "2500ms")
        assert "the loop is active" in said("resume")
        assert "paused" in said("pause")
        done = CliRunner().invoke(app, ["dead-letters"])
        assert (done.exit_code, "the simulator does not use Kafka" in done.stderr) == (3, True)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answered:
            assert 'sojourn_deciding{app="vld"} 0' in answered.read().decode()
        assert said("logs") == ""
        # an order is written down with the turn that follows it
        until(lambda: "set by hand with `sojourn scale`" in said("history"))
        process.send_signal(signal.SIGINT)
        printed, error = process.communicate(timeout=60)
    assert process.returncode == 0, error
    assert re.search(r"waiting for \d+ roots in flight\ndrained\n", error)
    assert "starting vld on the simulator with" in error
    assert "turns " in printed
    assert said("ps") == "no application is running\n"
    # looked back on: the state of this engine is not that of Spark
    assert "resumed with `sojourn resume`" in said("history", "--app", "vld")
    page = tmp_path / "page.html"
    said("history", "--html", page)
    assert "vld" in page.read_text()


def test_it_is_stopped_from_another_terminal():
    with started("--start", "extract=12,match=12") as process:
        until(lambda: status()["measured"]["arrivals_per_s"])
        assert said("stop") == "vld has stopped\n"
        _, error = process.communicate(timeout=60)
        assert process.returncode == 0, error
        assert error.endswith("drained\n")
    with started("--start", "extract=12,match=12") as process:
        until(lambda: status()["measured"]["arrivals_per_s"])
        told = json.loads(said("stop", "--now", "--app", "vld", "--json"))
        assert (told["name"], told["pid"], told["exit_status"]) == ("vld", process.pid, 130)
        _, error = process.communicate(timeout=60)
        assert process.returncode == 130, error
        assert "vld was interrupted" in error
    done = CliRunner().invoke(app, ["stop"])
    assert (done.exit_code, "no application is running" in done.stderr) == (3, True)


SLOW_ENGINE = """
import time

def launch(app, address, settings, state, progress):
    progress("waiting for executors")
    time.sleep(60)
"""


def test_one_that_starts_is_stopped_too(tmp_path):
    (tmp_path / "slow_engine.py").write_text(SLOW_ENGINE)
    arguments = [VLD, "--engine", "slow_engine:launch", "--target-p95", "3s"]
    with processes.started(
        [sys.executable, "-m", "sojourn", "run", *arguments],
        cwd=tmp_path, stderr=subprocess.PIPE, encoding="utf-8",
    ) as process:  # fmt: skip
        until(lambda: "waiting for executors" in said("ps"))
        repeated = "; uncommitted work is repeated at the next start"
        assert said("stop") == f"vld has stopped{repeated}\n"
        assert process.wait(timeout=60) == 130
        assert "vld was interrupted" in process.stderr.read()


def test_a_stop_of_one_that_failed_says_so(monkeypatch):
    module = import_module("sojourn.cli.steer")
    monkeypatch.setattr(module, "stop_application", lambda *_args, **_more: 1)
    with started():
        done = CliRunner().invoke(app, ["stop"])
    assert done.exit_code == 3
    assert "vld ended with exit status 1; its output has the reason" in done.stderr


def test_a_stop_of_one_that_is_killed_says_so():
    with started("--start", "extract=12,match=12") as process:
        entry = find("vld")

        def kill(_stage):
            process.kill()
            process.wait()

        assert stop(*entry, now=False, progress=kill) is None


def test_it_ends_in_its_time_and_the_next_start_goes_on_with_its_processors():
    begins = ("--start", "extract=12,match=12", "--price-per-hour", "3600")
    first = said_by("--for", "1s", "--json", *begins, "--passive")
    assert (first[0]["event"], first[0]["bootstrap_servers"]) == ("ready", None)
    assert first[-1]["event"] == "end"
    assert 1 <= first[-1]["turns"] <= 5
    assert first[-1]["bill"]["cost"] >= 1
    again = said_by("--for", "1s", "--json", "--passive")
    assert again[0]["begins_with"] == ("extract=12, match=12, aggregate=1 (as in the last run)")


def test_after_a_kill_it_starts_with_the_allocation_set_by_hand():
    with started("--passive") as process:
        said("scale", "match=12", "extract=9")
        process.kill()
        process.wait()
    again = said_by("--for", "1s", "--json", "--passive")
    assert again[0]["begins_with"] == "extract=9, match=12, aggregate=1 (as in the last run)"


def test_after_a_kill_it_starts_with_the_allocation_that_the_loop_has_made():
    with started() as process:
        until(lambda: status()["changes"])
        said("pause")  # no further change comes between the look and the kill
        ended = {name: o["running"] for name, o in status()["operators"].items()}
        process.kill()
        process.wait()
    again = said_by("--for", "1s", "--json", "--passive")
    assert again[0]["allocation"] == ended != {"extract": 1, "match": 1, "aggregate": 1}


def said_by(*arguments):
    done = CliRunner().invoke(
        app,
        ["run", VLD, "--engine", "simulator", "--target-p95", "3s", "--max-processors", "25",
         "--every", "200ms", *arguments],
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_trace_is_played_to_it_and_ends_it(tmp_path):
    trace = tmp_path / "trace.csv"
    trace.write_text("timestamp,rate\n0,20\n60,40\n120,40\n")
    history = tmp_path / "own"
    events = said_by(
        "--trace", str(trace), "--faster", "60", "--times", "0.5", "--passive", "--json",
        "--start", "extract=12,match=12", "--history", str(history),
    )  # fmt: skip
    assert 1 <= events[-1]["turns"] <= 10
    # on a busy machine a look may come so late that it is not used
    seen = [e.observation for e in read_episodes(history) if e.observation.usable]
    entered = sum(o.arrivals_per_s * o.lasted_s for o in seen)
    due = sum(10 * _within(o, 0, 1) + 20 * _within(o, 1, 2) for o in seen)
    assert entered == pytest.approx(due, abs=22)


def _within(seen, since_s, until_s):
    return max(0.0, min(seen.at_s, until_s) - max(seen.since_s, since_s))


def test_an_application_in_python_is_simulated_with_what_is_guessed(tmp_path, monkeypatch):
    (tmp_path / "app_of_a_simulation.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path])
    monkeypatch.setattr("os.sched_getaffinity", lambda _pid: {0, 1})
    address = "app_of_a_simulation:app"
    arguments = ("--engine", "simulator", "--target-p95", "1s", "--for", "1s", "--json")
    first, *_ = map(json.loads, said("run", address, *arguments).splitlines())
    _, takes, sends = first["notes"]
    assert takes == (
        "the service time of same is unknown: 10 ms is assumed; give service_s= to its "
        "@app.operator"
    )
    assert sends == (
        "the rate of lines is unknown: 1 record per second is assumed; write --rate lines=40"
    )
    first, *_ = map(
        json.loads, said("run", address, *arguments, "--rate", "lines=200").splitlines()
    )
    assert len(first["notes"]) == 2
    done = CliRunner().invoke(app, ["run", address, *arguments, "--rate", "cars=2"])
    assert done.exit_code == 2
    assert "--rate cars: there is no such source; there are lines" in done.stderr


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--bootstrap-servers", "k:9092"),
        ("--kafka-option", "a=b"),
        ("--kafka-patience", "15m"),
        ("--broker-port", "9092"),
        ("--starting-offsets", "earliest"),
        ("--batch", "60s"),
    ],
)
def test_what_only_spark_has_is_refused_by_name(option, value):
    error = refused(VLD, "--engine", "simulator", option, value)
    assert f"{option} is for the engine spark, not simulator; leave it out" in error


def test_what_only_the_simulator_has_is_refused_by_name():
    error = refused(VLD, "--rate", "frames=20")
    assert "--rate is for the engine simulator, not spark; leave it out" in error


def test_other_engines_are_not_told_what_they_do_not_know(tmp_path):
    trace = tmp_path / "trace.csv"
    trace.write_text("0,20\n60,40\n")
    assert "--trace needs the engine spark or simulator" in refused(
        VLD, "--engine", "live_engine:launch", "--trace", trace
    )
    assert "unknown engine 'flink'; write one of spark, simulator" in refused(
        VLD, "--engine", "flink"
    )
    error = refused("spark.shop:app", "--trace", trace)
    assert "sources.orders: it has no samples" in error


def test_the_state_of_another_engine_is_refused(tmp_path):
    state = str(tmp_path / "state")
    said_by("--for", "200ms", "--json", "--passive", "--state", state)
    assert "is the state of vld on simulator, not of vld on spark" in refused(
        VLD, "--state", state
    )


def test_a_user_without_spark_can_run_it(tmp_path):
    """Neither Java nor a module of Spark is touched."""
    blocked = tmp_path / "sitecustomize.py"
    blocked.write_text(
        "import sys\n"
        "for name in ('pyspark', 'confluent_kafka', 'lmdb', 'psutil'):\n"
        "    sys.modules[name] = None\n"
    )
    paths = f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    hidden = os.environ | {"PYTHONPATH": paths, "JAVA_HOME": str(tmp_path)}
    with started("--for", "400ms", env=hidden) as process:
        _, error = process.communicate(timeout=60)
    assert process.returncode == 0, error

"""Commands around a running application: real sockets, the simulator behind them."""

import json
import os
import re
import socket
import threading
import urllib.request
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from importlib import import_module
from io import StringIO
from itertools import islice
from pathlib import Path
from urllib.error import HTTPError

import pytest
from rich.console import Console
from typer.testing import CliRunner

import sojourn as sj
from live_engine import LiveSimulator
from sojourn.act.options import read_choice
from sojourn.cli import app
from sojourn.cli.dead_letters import Letters
from sojourn.decide.plan import Plan
from sojourn.errors import BadFile, EngineError
from sojourn.report.prometheus import serve_metrics
from sojourn.report.terminal.status import status_view
from sojourn.service.control import serving
from sojourn.service.folders import state_folder
from sojourn.service.logs import Tail
from sojourn.service.name_lock import NameLock
from sojourn.service.orders import LoopSettings
from sojourn.service.requests import answer
from sojourn.service.status import LatestDecisions, Measured, from_json, status, to_json
from sojourn.service.supervisor import Supervisor

VLD = sj.read_topology(Path(__file__).parents[3] / "examples" / "vld.yaml")
START = {"extract": 1, "match": 1, "aggregate": 1}


@pytest.fixture(autouse=True)
def own(places):
    """Come before all that writes there."""
    return places


def run(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)))


def scraped(told):
    with (
        serve_metrics(0, lambda: told) as server,
        urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/metrics") as answered,
    ):
        return answered.read().decode()


def said(*arguments):
    done = run(*arguments)
    assert done.exit_code == 0, done.output
    return done.stdout


def make(target, most):
    return read_choice("drs:forecast=yes").made(target, most)


@contextmanager
def listening(tmp_path, name="vld"):
    """Let an application of that name be there for commands."""
    engine = LiveSimulator()
    engine.start(VLD, Plan.here(START))
    begins = LoopSettings(objective=sj.Objective(target=sj.Target("mean", 2.0)), most=25)
    running, decisions = Supervisor(engine, VLD, make, begins), LatestDecisions()

    def told():
        return status(running, decisions.told())

    state = tmp_path / name
    with (
        NameLock(name, address="apps:app", state=state, logs=state / "logs") as claim,
        serving(claim.socket, claim.token, partial(answer, running, told)),
    ):
        for episode in islice(running.turns(), 20):
            decisions.add(episode)
        yield running


@pytest.fixture
def vld(tmp_path):
    with listening(tmp_path) as running:
        yield running


# -- dead letters ------------------------------------------------------------------------------


def test_a_running_application_tells_where_its_dead_letters_are(vld):
    kafka = {"socket.timeout.ms": "5000"}
    letters = Letters(app=None, servers=None, state=None, kafka=kafka).opened()
    assert letters.topic == "vld.dead-letters"
    assert letters.clients == {**vld.engine.kafka().clients, "socket.timeout.ms": "5000"}


def test_of_one_that_has_ended_it_has_to_be_said(tmp_path):
    done = run("dead-letters")
    assert done.exit_code == 3
    assert "runs only while the application does" in done.output
    tmp_path.joinpath("application.json").write_text('{"application": "shop"}')
    done = run("retry", "--all", "--state", tmp_path)
    assert done.exit_code == 2
    assert "where the Kafka of shop is" in done.output
    which = Letters(app=None, servers="kafka:9092", state=tmp_path, kafka={})
    letters = which.opened()
    assert (letters.topic, letters.clients) == (
        "shop.dead-letters",
        {"bootstrap.servers": "kafka:9092"},
    )
    done = run("dead-letters", "--bootstrap-servers", "kafka:9092")
    assert done.exit_code == 2
    assert "no application is named" in done.output
    done = run("dead-letters", "--bootstrap-servers", "kafka:9092", "--state", tmp_path / "no")
    assert done.exit_code == 2
    assert "add --app" in done.output


# -- scale, pause, resume, set -----------------------------------------------------------------


def test_processors_are_set_by_hand_and_the_loop_is_paused(vld):
    before = vld.engine.plan.allocation
    printed = said("scale", "match=12", "extract=9")
    assert printed == (
        f"vld: extract {before['extract']} -> 9, match {before['match']} -> 12; "
        "the loop is paused: `sojourn resume` starts it again\n"
    )
    assert vld.engine.plan.allocation == {"extract": 9, "match": 12, "aggregate": 1}
    assert "paused" in said("top", "--once")


def test_the_loop_is_paused_and_resumed(vld):
    assert said("pause").startswith("vld: the loop is paused")
    assert vld.mode.name == "paused"
    assert said("resume") == (
        "vld: the loop is active: drs, mean ≤ 2 s, at most 25 processors, forecast=yes\n"
    )
    assert vld.mode.name == "active"


def test_orders_are_told_with_the_name_of_who_gave_them(vld, monkeypatch):
    monkeypatch.setenv("SUDO_USER", "anna")
    said("pause")
    monkeypatch.delenv("SUDO_USER")
    monkeypatch.setenv("LOGNAME", "ben\x1b[2J")
    said("set", "--target-p95", "300ms")
    reasons = [episode.decision.reason for episode in vld.untold()]
    assert reasons[0] == "paused with `sojourn pause` by anna: it only recommends"
    assert reasons[1].startswith("set with `sojourn set`: drs, p95 ≤ 0.3 s"), "no odd letters"


@pytest.mark.usefixtures("vld")
def test_a_target_that_cannot_be_met_is_said_and_shown():
    assert "no number of processors reaches mean ≤ 1 s" in said("set", "--target-mean", "1s")
    assert "note   no number of processors reaches mean ≤ 1 s" in said("top", "--once")


def test_another_goal_keeps_the_other_options(vld):
    printed = said("set", "--target-p95", "4s", "--max-processors", "30")
    assert printed == ("vld: now drs, p95 ≤ 4 s, at most 30 processors, forecast=yes\n")
    assert vld.orders.policy.forecast is not None
    assert vld.orders.policy.goal.target == sj.Target("p95", 4.0)


@pytest.mark.usefixtures("vld")
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("scale", "match"), "'match' is not OPERATOR=PROCESSORS"),
        (("scale", "match=1", "match=2"), "match occurs twice"),
        (("scale", "votes=1"), "vld: there is no operator 'votes'"),
        (("scale", "match=90"), "above the maximum, 25"),
        (("set",), "nothing to set; write --target-mean 300ms"),
        (("set", "--target-mean", "300"), "has no unit"),
        (
            ("set", "--max-processors", "2"),
            "vld: the maximum is 2 processors, and the operators",
        ),
    ],
)
def test_what_cannot_be_is_one_line_and_status_2(arguments, says):
    done = run(*arguments)
    assert (done.exit_code, says in done.stderr) == (2, True), done.output


@pytest.mark.parametrize("arguments", [("scale", "a=1"), ("pause",), ("resume",), ("top",)])
def test_without_an_application_they_say_how_to_start_one(arguments):
    done = run(*arguments)
    assert done.exit_code == 3
    assert done.stderr == "sojourn: no application is running; `sojourn run` starts one\n"


def test_of_several_one_is_named(tmp_path, vld):
    with listening(tmp_path, "votes") as votes:
        done = run("pause")
        assert done.exit_code == 2
        assert "2 applications are running: vld, votes; choose one: --app vld" in done.stderr
        said("pause", "--app", "votes")
        assert (vld.mode.name, votes.mode.name) == ("active", "paused")


# -- top and ps --------------------------------------------------------------------------------


@pytest.mark.usefixtures("vld")
def test_top_shows_operators_the_latency_and_the_last_decisions():
    printed = said("top", "--once")
    head, policy, latency, *rest = printed.splitlines()
    assert re.fullmatch(r"vld · pid \d+ · 0:00:20 · \d+ processors *", head)
    assert policy.startswith("drs, mean ≤ 2 s, at most 25 processors, forecast=yes; the loop")
    assert re.match(r"mean [\d.]+ s of 2 s   [\d.]+ roots per s", latency)
    rest = "\n".join(rest)
    assert re.search(r"extract +\d+ +[\d.]+ +\d+% +[\d.]+ ms .* 2 +match", rest)
    assert re.search(r"\d\d:\d\d:\d\d  up    1:1:1 -> \d+:\d+:1  extract, match cannot", rest)
    assert "restarts 2, records replayed 0, retried 0, dead letters 3" in rest
    assert rest.rstrip().endswith("topics between operators hold 0 records")


def test_top_as_json_is_the_status(vld):
    told = json.loads(said("top", "--json"))
    assert told["allocation"] == vld.engine.plan.allocation
    assert told["measured"]["target_statistic_s"] > 0
    assert list(told["operators"]) == ["extract", "match", "aggregate"]


@pytest.mark.usefixtures("vld")
def test_top_before_the_first_look_and_in_trouble():
    told = json.loads(said("top", "--json"))
    told["measured"]["target_statistic_s"] = told["measured"]["arrivals_per_s"] = None
    told["operators"]["match"] |= {
        "running": 3, "wanted": 5, "utilisation": None, "service_s": None, "wait_s": None,
        "arrivals_per_s": None, "backlog": None, "longest_service_s": 4.25,
    }  # fmt: skip
    told |= {"deciding": "failed", "why": "the loop failed\x1b[1m", "now": ""}
    told["health"] |= {
        "failure": "match: it cannot be imported", "no_broker_s": 42.0,
        "notices": ["no broker answers at k:9"],
    }  # fmt: skip
    told["inner_topics"] = {"records": 7, "bytes": 1_200_000_000}
    told["decisions"] = [
        {**told["decisions"][0], "carried_out": False, "failure": "no processors"},
        {**told["decisions"][0], "kind": "hold", "carried_out": False, "failure": "a bug"},
    ]
    console = Console(file=StringIO(), width=200, color_system=None)
    console.print(status_view(from_json(told), 1))
    printed = console.file.getvalue()
    for says in (
        "mean unknown of 2 s", "3 of 5", "longest", "4.25 s",
        "the loop is failed: the loop failed [1m",
        "up failed  1:1:1", ": no processors", "hold", ": a bug", "stopped: match: it cannot",
        "no broker has answered for 0:00:42", "no broker answers at k:9",
        "topics between operators hold 7 records, 1.2 GB",
    ):  # fmt: skip
        assert says in printed


@pytest.fixture
def terminal(monkeypatch):
    """Let commands think that they have one."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "160")


@pytest.mark.usefixtures("terminal")
def test_in_a_terminal_top_goes_on_until_it_is_interrupted(vld, monkeypatch):
    waits = []

    def wait(seconds):
        waits.append(seconds)
        if len(waits) == 3:
            raise KeyboardInterrupt
        vld.scale({"match": 10 + len(waits)})

    monkeypatch.setattr(import_module("sojourn.report.terminal.status"), "sleep", wait)
    printed = said("top")
    assert waits == [1.0] * 3
    assert printed.count("sends to") >= 3
    assert "processors were set by hand" in printed
    assert "has ended" not in printed


@pytest.mark.usefixtures("terminal")
def test_top_ends_with_the_application(tmp_path, monkeypatch):
    with ExitStack() as running:
        running.enter_context(listening(tmp_path))
        monkeypatch.setattr(
            import_module("sojourn.report.terminal.status"), "sleep", lambda _s: running.close()
        )
        assert said("top").endswith("vld has ended\n")


@pytest.mark.usefixtures("terminal", "vld")
def test_top_that_is_refused_says_so(places, monkeypatch):
    monkeypatch.setattr(
        import_module("sojourn.report.terminal.status"),
        "sleep",
        lambda _s: (places / "vld" / "token").write_text("not it"),
    )
    done = run("top")
    assert (done.exit_code, "refused: the token" in done.stderr) == (3, True)


def test_ps_lists_all_that_run(tmp_path, vld):
    with listening(tmp_path, "votes"):
        rows = said("ps").splitlines()
        assert [row.split()[0] for row in rows[2:]] == ["vld", "votes"]
        assert "active" in rows[2]
        told = json.loads(said("ps", "--json"))["applications"]
    assert [row["name"] for row in told] == ["vld", "votes"]
    assert told[0]["allocation"] == vld.engine.plan.allocation
    assert told[0]["address"] == "apps:app"


@pytest.mark.usefixtures("vld")
def test_ps_of_one_that_does_not_answer_says_so(places):
    token = places / "vld" / "token"
    token.write_text("not it")
    assert "does not answer: vld: refused" in said("ps")


# -- logs --------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "vld" / "logs"
    made.mkdir(parents=True)
    (made / "extract.log").write_text("".join(f"line {n}\n" for n in range(100)))
    (made / "match.log").write_bytes(b"one\ntwo\xff\x1b[31m\nthree")
    return made


@pytest.mark.usefixtures("vld", "folder")
def test_logs_of_all_name_the_operator_on_each_line():
    printed = said("logs", "--lines", "2").splitlines()
    assert printed == [
        "extract | line 98", "extract | line 99",
        r"match   | two\xff\x1b[31m", "match   | three",
    ]  # fmt: skip


@pytest.mark.usefixtures("vld", "folder")
def test_logs_of_one_are_as_it_wrote_them():
    assert said("logs", "extract", "-n", "1") == "line 99\n"
    assert len(said("logs", "extract").splitlines()) == 20
    assert len(said("logs", "extract", "-n", "1000").splitlines()) == 100
    assert said("logs", "extract", "-n", "0") == ""
    assert said("logs", "match", "-n", "0") == ""


@pytest.mark.usefixtures("vld", "folder")
@pytest.mark.parametrize("name", ["votes", "../logs/extract", "."])
def test_a_log_that_is_not_there_is_refused(name):
    done = run("logs", name)
    assert done.exit_code == 2
    assert "there are: extract, match" in done.stderr


@pytest.mark.parametrize("command", ["top", "pause", "resume", "ps"])
def test_an_argument_too_many_is_refused_with_the_option_for_applications(command):
    done = run(command, "votes")
    assert done.exit_code == 2
    assert "unexpected argument votes" in done.output
    assert ("--app NAME chooses the application" in done.output) == (command != "ps")


def test_logs_of_the_application_that_ran_last_are_found():
    assert "no application has run on this machine" in run("logs").stderr
    for name in ("mill", "shop"):
        (state_folder(name) / "logs").mkdir(parents=True)
        (state_folder(name) / "logs" / "sum.log").write_text(f"{name}\n")
    os.utime(state_folder("mill") / "logs", (2e9, 2e9))
    assert said("logs") == "sum | mill\n"
    assert said("logs", "--app", "shop") == "sum | shop\n"
    assert "shop is an application: write --app shop" in run("logs", "shop").stderr


@pytest.mark.usefixtures("folder")
def test_logs_of_one_that_ended_are_in_its_state(tmp_path):
    assert said("logs", "extract", "-n", "1", "--state", tmp_path / "vld") == "line 99\n"
    assert said("logs", "--state", tmp_path) == ""


@pytest.mark.usefixtures("vld")
def test_lines_of_several_operators_come_by_their_times(folder):
    """Whatever follows a line with a time belongs to it, as the lines of a traceback do."""
    (folder / "extract.log").write_text(
        "old\n2026-01-31T12:00:00.100Z begin\n2026-01-31T12:00:02.000Z failed\n  at line 3\n"
    )
    (folder / "match.log").write_text(
        "2026-01-31T12:00:01.000Z one\n2026-01-31T13:00:03.000+01:00 two\n"
    )
    assert said("logs").splitlines() == [
        "extract | old",
        "extract | 2026-01-31T12:00:00.100Z begin",
        "match   | 2026-01-31T12:00:01.000Z one",
        "extract | 2026-01-31T12:00:02.000Z failed",
        "extract |   at line 3",
        "match   | 2026-01-31T13:00:03.000+01:00 two",
    ]
    assert said("logs", "--since", "2026-01-31T12:00:02Z").splitlines() == [
        "extract | 2026-01-31T12:00:02.000Z failed",
        "extract |   at line 3",
        "match   | 2026-01-31T13:00:03.000+01:00 two",
    ]
    assert said("logs", "--since", "2h") == ""


@pytest.mark.usefixtures("vld")
def test_all_lines_since_a_time_are_shown_and_logs_without_times_are_named(folder):
    now = datetime.now(UTC)
    (folder / "match.log").write_text(
        "".join(
            f"{now - timedelta(minutes=n):%Y-%m-%dT%H:%M:%SZ} {n}\n" for n in range(99, 0, -1)
        )
    )
    done = run("logs", "--since", "3570s")  # half a minute from either neighbour
    assert [line.split()[-1] for line in done.stdout.splitlines()] == [
        str(n) for n in range(59, 0, -1)
    ]
    assert done.stderr == "no line of extract begins with a time; -n 20 shows the last lines\n"
    done = run("logs", "--since", "yesterday")
    assert done.exit_code == 2
    assert (
        "--since 'yesterday' is not a time; write 5m, 2h or 2026-01-31T12:00:00Z" in done.stderr
    )


def test_a_log_that_may_not_be_read_is_named(tmp_path):
    with pytest.raises(BadFile, match="cannot be read"):
        Tail(tmp_path / "none.log", 3)


def test_what_is_written_later_follows(folder):
    path = folder / "extract.log"
    tail = Tail(path, 0)
    assert list(tail.new()) == []
    with path.open("a") as log:
        log.write("half")
        log.flush()
        assert list(tail.new()) == []
        log.write(" and half\nmore\n")
    assert list(tail.new()) == ["half and half", "more"]
    tail.close()


def test_a_log_that_was_cut_or_replaced_is_read_from_its_beginning(folder):
    path = folder / "extract.log"
    tail = Tail(path, 0)
    path.write_text("anew\n")
    assert list(tail.new()) == ["anew"]
    (folder / "other").write_text("another\n")
    (folder / "other").replace(path)
    assert list(tail.new()) == ["another"]
    path.unlink()
    assert list(tail.new()) == []
    tail.close()


def test_long_logs_are_read_from_their_end(folder):
    path = folder / "extract.log"
    path.write_text("".join(f"{n:09}{'x' * 90}\n" for n in range(5000)))
    tail = Tail(path, 1500)
    assert [int(line[:9]) for line in tail.new()] == list(range(3500, 5000))
    tail.close()


@pytest.mark.usefixtures("vld")
def test_following_shows_new_operators_too_until_it_is_interrupted(folder, monkeypatch):
    looks = []

    def wait(_s):
        looks.append(1)
        if len(looks) == 1:
            (folder / "aggregate.log").write_text("begins\n")
        if len(looks) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(import_module("sojourn.cli.logs"), "sleep", wait)
    assert said("logs", "-f", "-n", "0") == "aggregate | begins\n"


# -- what is not always told -------------------------------------------------------------------


def test_an_application_of_an_earlier_version_is_shown_with_what_it_tells(vld):
    told = to_json(status(vld))
    for name in ("inner_topics", "warning"):
        del told[name]
    for name in ("notices", "no_broker_s"):
        del told["health"][name]
    console = Console(file=StringIO(), width=120)
    console.print(status_view(from_json(told), 1))
    assert "dead letters 3" in console.file.getvalue()


def test_a_key_that_keeps_a_processor_busy_is_shown(vld):
    told = to_json(status(vld))
    busy = dict(zip(told["operators"], (0.97, 0.2, None), strict=True))
    for name, part in busy.items():
        told["operators"][name] |= {"key_busy": part, "key": f"'{name}\x1b'"}
    console = Console(file=StringIO(), width=200, color_system=None)
    console.print(status_view(from_json(told), 1))
    (shown,) = [row for row in console.file.getvalue().splitlines() if row.startswith("key")]
    assert "keeps 97% of one processor of extract busy; more processors do not help" in shown
    assert "\x1b" not in shown


def test_an_application_that_reads_nothing_yet_is_starting(vld, monkeypatch):
    waits = replace(vld.engine.health(), waits_for="waiting for the first records of lines[0]")
    monkeypatch.setattr(vld.engine, "health", lambda: waits)
    (row,) = json.loads(said("ps", "--json"))["applications"]
    assert (row["status"], row["waits_for"]) == ("starting", waits.waits_for)
    assert "starting" in said("ps")
    assert said("top", "--once").splitlines()[1].strip() == f"starting: {waits.waits_for}"
    assert json.loads(said("top", "--json"))["health"]["waits_for"] == waits.waits_for
    assert 'sojourn_reading{app="vld"} 0.0\n' in scraped(status(vld))


def test_what_somebody_should_know_is_listed_and_measured(vld, monkeypatch):
    vld.set_goal(sj.Target("mean", 1.0), None)
    away = replace(vld.engine.health(), no_broker_s=65.0, notices=("clocks are off by 3 s",))
    monkeypatch.setattr(vld.engine, "health", lambda: away)
    listed = json.loads(said("ps", "--json"))["applications"]
    assert listed[0]["notices"][:2] == [
        "no broker has answered for 0:01:05",
        "clocks are off by 3 s",
    ]
    assert "no number of processors reaches mean ≤ 1 s" in listed[0]["notices"][2]
    assert "warnings" in said("ps")
    text = scraped(status(vld))
    assert 'sojourn_no_broker_seconds{app="vld"} 65.0\n' in text
    assert 'sojourn_target_reachable{app="vld"} 0.0\n' in text
    assert 'sojourn_processors_most{app="vld"} 25.0\n' in text


# -- Prometheus --------------------------------------------------------------------------------

LINE = re.compile(r'sojourn_[a-z_0-9]+\{(\w+="([^"\\\n]|\\.)*",?)+\} [-+.e\d]+')


def test_prometheus_gets_what_is_measured(vld):
    text = scraped(status(vld))
    values = [line for line in text.splitlines() if not line.startswith("#")]
    assert all(LINE.fullmatch(line) for line in values), values
    k = vld.engine.plan.allocation["match"]
    assert f'sojourn_processors{{app="vld",operator="match"}} {k}.0\n' in text
    assert 'sojourn_target_seconds{app="vld",statistic="mean"} 2.0\n' in text
    assert 'sojourn_dead_letters_total{app="vld"} 3.0\n' in text
    assert 'sojourn_restarts_total{app="vld",operator="extract"} 2.0\n' in text
    assert 'sojourn_time_seconds{app="vld",statistic="p95"}' in text
    assert 'sojourn_deciding{app="vld"} 1.0\n' in text
    names = re.findall(r"# TYPE (\w+) (?:gauge|counter)\n", text)
    assert len(names) == len(set(names)) > 15


def test_what_is_not_known_is_left_out_and_names_are_escaped(vld):
    unknown = Measured(at_s=0.0, percentiles_s={"p95": None})
    text = scraped(replace(status(vld), name='a"b\\c\nd', changes=1, measured=unknown))
    assert 'sojourn_changes_total{app="a\\"b\\\\c\\nd"} 1.0' in text.splitlines()
    assert "sojourn_time_seconds" not in text


def test_metrics_are_served_on_this_machine_alone(vld):
    with serve_metrics(0, lambda: status(vld)) as server:
        address = f"http://127.0.0.1:{server.server_port}"
        with urllib.request.urlopen(f"{address}/metrics") as answered:
            assert answered.headers["Content-Type"].startswith("text/plain; version=0.0.4")
            assert "sojourn_processors" in answered.read().decode()
        with pytest.raises(HTTPError, match="there is only /metrics"):
            urllib.request.urlopen(f"{address}/etc/passwd")
        assert server.server_address[0] == "127.0.0.1"


def test_a_port_that_is_taken_is_named():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with (
            pytest.raises(EngineError, match=f"port {port} for Prometheus .* --prometheus"),
            serve_metrics(port, lambda: None),
        ):
            pass


def test_while_one_asks_another_is_answered(vld):
    """A browser that opens a connection and says nothing must not keep Prometheus waiting."""
    with (
        serve_metrics(0, lambda: status(vld)) as server,
        socket.create_connection(("127.0.0.1", server.server_port)),
        urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/") as answered,
    ):
        assert answered.status == 200
        assert threading.active_count() > 2

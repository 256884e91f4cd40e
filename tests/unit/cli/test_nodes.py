"""The nodes of a cluster, as commands show them: real sockets, a status that was made up."""

import json
import re
import socket
from dataclasses import asdict, replace

import pytest
from typer.testing import CliRunner

from sojourn.cli import app
from sojourn.decide.target import Target
from sojourn.engine import Health, NodeHealth
from sojourn.service.control import serving
from sojourn.service.name_lock import NameLock
from sojourn.service.status import DecisionStatus, Measured, OperatorStatus, Status, to_json

pytestmark = pytest.mark.usefixtures("places")

WHY = "its agent did not start: No module named sojourn"
ELSEWHERE = NodeHealth(
    name="executor-1", cores=4.0, busy_cores=2.5, processors={"extract": 3, "match": 1},
    memory_bytes=1_200_000_000, machine="far.example", logs="/nodes/1/logs",
    memory_used_bytes=3_000_000_000, memory_limit_bytes=4_000_000_000, round_trip_s=0.0012,
    clock_offset_s=0.3, received_bytes={"frames": 5_000_000}, received_bytes_per_s=80_000.0,
    sent_bytes={"features": 2_000, "": 30}, sent_bytes_per_s=400.0, warnings=("its clock is",),
)  # fmt: skip
BROKEN = NodeHealth(name="executor-2", reason=WHY)


def made_up(*nodes):
    return Status(
        name="vld", policy="drs", target=Target("p95", 3.0), max_processors=25,
        deciding="active", why="", every_s=1.0, at_s=9.0, allocation={"extract": 3, "match": 1},
        measured=Measured(at_s=9.0), operators={"extract": OperatorStatus(wanted=3)}, now="",
        usable=True, changes=0, decisions=(),
        health=Health(
            nodes=nodes, notices=tuple(f"node {n.name}: {n.reason}" for n in nodes if n.reason)
        ),
    )  # fmt: skip


class Application:
    """One that runs, and says of itself what a test wants."""

    def __init__(self, state):
        self.state, self.told = state, made_up()

    def run(self, *arguments):
        with (
            NameLock("vld", address="vld:app", state=self.state, logs=self.state) as claim,
            serving(claim.socket, claim.token, lambda _request: to_json(self.told)),
        ):
            return CliRunner().invoke(app, list(map(str, arguments)))

    def said(self, *arguments):
        done = self.run(*arguments)
        assert done.exit_code == 0, done.output
        return done.stdout


@pytest.fixture
def vld(tmp_path):
    return Application(tmp_path / "state")


def test_top_has_a_table_of_nodes_and_says_why_one_cannot_be_used(vld):
    vld.told = made_up(ELSEWHERE, BROKEN)
    printed = vld.said("top", "--once")
    lines = [
        " ".join(line.split())
        for line in printed.splitlines()
        if line.startswith(("node ", "executor-"))
    ]
    assert lines == [
        "node cores processors memory operators",
        "executor-1 2.5 of 4 4 1.2 GB extract 3, match 1",
        "executor-2 0 cannot be used",
        "node memory in use round trip clock in per s out per s",
        "executor-1 75% of 4.0 GB 1.2 ms +300 ms 80.0 kB 400 bytes",
        f"node executor-2: {WHY}",
    ]


def test_on_one_machine_there_are_no_nodes_to_see(vld):
    assert "node" not in vld.said("top", "--once")
    assert "nodes" not in vld.said("ps")
    assert json.loads(vld.said("top", "--json"))["nodes"] == []


def test_programs_are_told_of_nodes(vld):
    vld.told = made_up(ELSEWHERE, BROKEN)
    nodes = json.loads(json.dumps([asdict(ELSEWHERE), asdict(BROKEN)]))
    assert json.loads(vld.said("top", "--json"))["nodes"] == nodes
    (row,) = json.loads(vld.said("ps", "--json"))["applications"]
    assert (row["nodes"], row["notices"]) == (nodes, [f"node executor-2: {WHY}"])


def test_ps_counts_nodes(vld):
    vld.told = made_up(ELSEWHERE)
    head, _, row = vld.said("ps").splitlines()
    at = head.index("nodes")
    assert row[at : at + len("nodes")].strip() == "1"
    assert "warnings" not in head


@pytest.mark.parametrize(
    ("node", "says"),
    [
        (replace(ELSEWHERE, clock_offset_s=0.0005), "±0"),  # the network may be to blame
        (replace(ELSEWHERE, clock_offset_s=-7.0), "-7 s"),
        (replace(ELSEWHERE, clock_offset_s=None), "1.2 ms   "),
    ],
)
def test_of_a_clock_only_what_is_known_is_shown(vld, node, says):
    vld.told = made_up(node)
    printed = vld.said("top", "--once").splitlines()
    assert says in [line for line in printed if line.startswith("executor-1")][1]


def test_before_anything_is_measured_nothing_of_it_is_shown(vld):
    vld.told = made_up(BROKEN)
    assert "round trip" not in vld.said("top", "--once")


def test_ps_shows_nodes_and_bytes_by_stream_if_asked_to(vld):
    vld.told = made_up(ELSEWHERE, BROKEN)
    assert "executor-1" not in vld.said("ps").splitlines()[-1]
    rows = [line.split() for line in vld.said("ps", "--nodes").splitlines()]
    assert ["driver", "executor-1", "frames", "5.0", "MB"] in rows
    assert ["executor-1", "driver", "features", "2.0", "kB"] in rows
    assert ["executor-1", "driver", "(no", "record)", "30", "bytes"] in rows
    assert any(row[:5] == ["executor-1", "2.5", "of", "4", "4"] for row in rows)
    vld.told = made_up()
    assert "vld has no nodes: it runs on this machine" in vld.said("ps", "--nodes")


# -- logs ----------------------------------------------------------------------------------


@pytest.fixture
def here(tmp_path):
    logs = tmp_path / "work" / "logs"
    logs.mkdir(parents=True)
    (logs / "extract.log").write_text("one\ntwo\n")
    return replace(ELSEWHERE, machine=socket.gethostname(), logs=str(logs))


def test_logs_of_a_node_on_this_machine_are_read(vld, here):
    vld.told = made_up(here)
    assert vld.said("logs", "--node", "executor-1") == "extract | one\nextract | two\n"
    assert vld.said("logs", "extract", "-n", "1", "--node", "executor-1") == "two\n"


def test_without_a_node_logs_say_how_to_see_those_of_nodes(vld, here):
    vld.told = made_up(here, BROKEN)
    done = vld.run("logs")
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr == "the output of functions is on the nodes: add --node executor-1\n"
    vld.told = made_up()
    assert vld.run("logs").stderr == ""


def test_logs_on_another_machine_are_told_where(vld, here):
    vld.told = made_up(ELSEWHERE, replace(here, name="executor-3", logs=f"{here.logs}/gone"))
    done = vld.run("logs", "--node", "executor-1")
    assert done.exit_code == 3
    assert "are on far.example, in /nodes/1/logs; read them there" in done.stderr
    assert f"in {here.logs}/gone" in vld.run("logs", "--node", "executor-3").stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--node", "executor-7"), "no node 'executor-7'; there are: executor-1, executor-2"),
        (("--node", "executor-1", "--state", "."), "--state and --node exclude each other"),
    ],
)
def test_a_node_that_cannot_be_meant_is_refused(vld, arguments, says):
    vld.told = made_up(ELSEWHERE, BROKEN)
    done = vld.run("logs", *arguments)
    assert done.exit_code == 2
    assert says in done.stderr


def test_a_node_whose_agent_has_not_started_has_no_logs(vld):
    vld.told = made_up(BROKEN)
    done = vld.run("logs", "--node", "executor-2")
    assert (done.exit_code, WHY in done.stderr) == (3, True)


def test_on_one_machine_no_node_is_needed(vld):
    assert "leave out --node" in vld.run("logs", "--node", "executor-1").stderr


BUSY = OperatorStatus(
    wanted=112, running=108, sends_to=("aggregate", "archive"), restarts=12, backlog=1_234_567,
    arrivals_per_s=123_456.0, served_per_s=1.0, service_s=0.01234, wait_s=0.4567,
    utilisation=0.87, key_busy=0.97, key="a frequent key",
)  # fmt: skip


@pytest.mark.parametrize("width", [60, 80, 100, 120, 160])
def test_top_cuts_no_number_at_any_width(vld, monkeypatch, width):
    """Columns that do not fit are left out, and texts are continued on the next line."""
    decision = DecisionStatus(
        at="2026-11-18T12:00:00+00:00", at_s=9.0, kind="up",
        before={"a": 108}, after={"a": 112},
        reason="extract cannot keep up: 123456 records per s arrive and 100800 are served",
        carried_out=True, failure="",
    )  # fmt: skip
    named = dict.fromkeys(("extract_features", "match"), BUSY)
    vld.told = replace(
        made_up(ELSEWHERE),
        operators=named,
        decisions=[decision],
        now="p95 is 2345 ms of 3000 ms",
    )
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", str(width))
    printed = re.sub(r"\x1b\[\d*m", "", vld.said("top", "--once"))
    assert max(map(len, printed.splitlines())) <= width
    assert "…" not in printed
    words = " ".join(printed.split())
    shown = ["108 of 112", "123456", "87%", "1234567", "97%", "2345 ms of 3000 ms", "100800"]
    shown += ["75% of 4.0 GB", "1.2 ms"]
    shown += ["12.34 ms", "456.7 ms"] if width >= 80 else []
    shown += ["restarts 0,", "12"] if width >= 100 else []
    shown += ["80.0 kB"] if width >= 120 else []
    shown += ["aggregate, archive"] if width >= 160 else []
    for each in shown:
        assert each in words, each

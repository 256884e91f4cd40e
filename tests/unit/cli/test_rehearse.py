"""`sojourn rehearse` as a user runs it: what it prints, draws and writes, and how it ends."""

import json
import re
import signal
import subprocess
import sys
from contextlib import nullcontext, suppress
from dataclasses import replace
from importlib import import_module
from io import StringIO
from math import isnan, nan
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from typer.testing import CliRunner

import sojourn as sj
from processes import started
from sojourn.cli import app
from sojourn.decide.plan import Plan
from sojourn.engine import Cost
from sojourn.errors import BadFile
from sojourn.history import read_episodes, read_run
from sojourn.knowledge import Decision, Episode
from sojourn.measure.observation import Moments, Observation, ObservedOperator
from sojourn.measure.sketch import Sketch
from sojourn.report.terminal.chart import columns, draw_columns
from sojourn.report.terminal.live import View
from sojourn.report.terminal.progress import picture
from sojourn.report.turns import Turn

VLD = Path(__file__).parents[3] / "examples" / "vld.yaml"
TARGET = sj.Target("p95", 3.0)
P95 = ("--target-p95", "3s")
QUICK = (*P95, "--policy", "threshold")


STUBBORN = '''
from dataclasses import dataclass
from typing import Annotated
from sojourn.act.policy import PolicyContext
from sojourn.knowledge import Wish

@dataclass(frozen=True)
class Stubborn:
    """Changes nothing."""
    context: PolicyContext
    said: Annotated[str, "the reason that it gives"] = "no"

    def __call__(self, knowledge, /):
        return Wish(allocation=knowledge.allocation, reason=self.said)
'''


def run(*arguments):
    return CliRunner().invoke(app, ["rehearse", *map(str, arguments)])


def run_json(*arguments):
    done = run(*arguments, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    """Return a load that doubles after two minutes, and lasts for five."""
    path = tmp_path_factory.mktemp("trace") / "rates.csv"
    path.write_text("timestamp,rate\n0,6\n120,12\n300,12\n", encoding="utf-8")
    return path


def turn(number, *, after=2, before=2, cost=None, failure="", operator="a", busy=0.5):
    """Return a turn of ten seconds."""
    at_s, timed = 10.0 * number, Moments(4, 5.0, 10.0)
    seen = ObservedOperator(
        name=operator, wanted=before, running=before, backlog=7, arrivals_per_s=2.0,
        served_per_s=2.0, served=20.0, service=timed, wait=timed, utilisation=busy,
    )  # fmt: skip
    times_s = Sketch.of([1.0 * number])
    episode = Episode(
        observation=Observation(
            since_s=at_s - 10, at_s=at_s, operators={operator: seen}, arrivals_per_s=2.0,
            completed_per_s=2.0, completions=times_s, sums=times_s,
        ),
        decision=Decision(
            at_s=at_s, before=Plan.here({operator: before}),
            after=Plan.here({operator: after}, reason="too slow"),
        ),
        cost=cost,
        failure=failure,
    )  # fmt: skip
    return Turn(episode=episode, expected=None, statistic="p95")


# -- without a terminal ------------------------------------------------------------------------


def test_each_change_is_a_line_and_the_score_comes_last(trace):
    done = run(VLD, "--trace", trace, *QUICK)
    assert done.exit_code == 0
    head, load, empty, first, *others = done.stdout.splitlines()
    assert head == "vld · threshold, p95 ≤ 3 s"
    assert (load, empty) == ("0:05:00 of load; starts at 6 per s with 5:5:1", "")
    assert re.fullmatch(r"0:0\d:\d\d  (up|down)  +5:5:1 -> [\d:]+  utilisation .*", first)
    end = "\n".join(others)
    assert re.search(
        r"kept +p95 ≤ 3 s in \d+\.\d% of \d+ slices of 60 s; the objective of 99% is", end
    )
    assert re.search(r"worst +p95 [\d.]+ s, in a slice of 60 s", end)
    assert re.search(r"turns +100 in 0:05:00", end)


def test_drs_is_what_decides_and_its_predictions_are_judged(trace):
    done = run(VLD, "--trace", trace, *P95)
    assert done.stdout.startswith("vld · drs, p95 ≤ 3 s\n")
    assert " up " in done.stdout
    assert re.search(r"\nlatency +\d+ +[+-]\d", done.stdout)


def test_the_seed_decides(trace):
    once, again, other = (
        run_json(VLD, "--trace", trace, *QUICK, "--seed", n) for n in (1, 1, 2)
    )
    assert once == again
    assert once["slices_s"] != other["slices_s"]


def test_json_is_that_of_a_history_with_the_score_in_front(trace):
    printed = run_json(VLD, "--trace", trace, *QUICK, "--slice", "30s", "--pause", "1s")
    assert list(printed) == [
        "name", "seed", "lasts_s", "pause_s", "slice_s", "kept", "score", "slices_s", "every_s",
        "policy", "target", "allocation", "summary", "turns",
    ]  # fmt: skip
    assert list(printed["score"]) == [
        "seed", "kept", "slices", "processor_hours", "changes", "worst_s", "unfinished",
        "node_hours",
    ]  # fmt: skip
    assert (len(printed["slices_s"]), len(printed["turns"])) == (10, 200)
    assert printed["score"]["worst_s"] == max(printed["slices_s"])
    assert printed["score"]["changes"] == printed["summary"]["changes"] > 0
    held = sum(sum(t["decision"]["before"].values()) for t in printed["turns"])
    assert printed["score"]["processor_hours"] == pytest.approx(held * 1.5 / 3600)


def test_a_passive_loop_only_recommends(trace):
    done = run(VLD, "--trace", trace, *P95, "--passive")
    assert "drs, p95 ≤ 3 s, only recommending" in done.stdout
    assert "up advised  5:5:1 -> " in done.stdout
    printed = run_json(VLD, "--trace", trace, *P95, "--passive")
    assert printed["score"]["changes"] == 0
    assert {sum(t["decision"]["before"].values()) for t in printed["turns"]} == {11}


def test_nothing_is_changed_in_quiet_hours(trace):
    quiet = ("--quiet-hours", "12:00-12:04", "--begins-at", "12:00")
    printed = run_json(VLD, "--trace", trace, *P95, *quiet)
    changed = [t["at_s"] for t in printed["turns"] if t["cost"]]
    assert changed
    assert min(changed) >= 240
    assert "quiet=12:00-12:04" in printed["policy"]


def test_every_turn_is_written_to_the_history(trace, tmp_path):
    path = tmp_path / "vld.history"
    printed = run_json(VLD, "--trace", trace, *QUICK, "--history", path)
    number, begun = read_run(path)
    assert (number, begun.policy) == (1, "threshold, p95 ≤ 3 s")
    assert dict(begun.plan.allocation) == printed["allocation"]
    assert [e.observation.at_s for e in read_episodes(path)] == [
        t["at_s"] for t in printed["turns"]
    ]
    shown = CliRunner().invoke(app, ["history", str(path)]).stdout
    assert re.search(r"turns +100 in 0:05:00", shown)


def test_a_plot_is_a_picture(trace, tmp_path):
    path = tmp_path / "deep" / "vld.png"
    assert run(VLD, "--trace", trace, *QUICK, "--plot", path).exit_code == 0
    assert path.read_bytes().startswith(b"\x89PNG")


def test_what_nothing_can_reach_is_said(trace):
    done = run(VLD, "--trace", trace, "--target-p95", "1s", "--policy", "static")
    assert "note        at 12 per s: no number of processors reaches p95 ≤ 1 s" in done.stdout


def test_a_load_of_nothing_has_no_worst_latency(tmp_path):
    (tmp_path / "none.csv").write_text("0,0\n60,0\n", encoding="utf-8")
    done = run(VLD, "--trace", tmp_path / "none.csv", *P95)
    assert done.exit_code == 0
    assert "too few roots to judge p95 ≤ 3 s in 99% of 60 s slices" in done.stdout
    assert "worst" not in done.stdout


def test_what_is_never_done_is_counted(trace):
    done = run(VLD, "--trace", trace, *P95, "--policy", "static", "--processors", 3)
    assert re.search(r"0\.25 processor-hours; \d+ roots not completed", done.stdout)


def test_an_interrupted_rehearsal_has_no_score(trace, monkeypatch):
    def interrupt(episode):
        if episode.observation.at_s >= 50:
            raise KeyboardInterrupt

    command = import_module("sojourn.cli.rehearse")
    monkeypatch.setattr(command, "lines", lambda: nullcontext(interrupt))
    done = run(VLD, "--trace", trace, *QUICK)
    assert done.exit_code == 130
    assert "interrupted at 0:00:51 of 0:05:00, so there is no score" in done.stdout
    assert re.search(r"turns +17 in 0:00:51", done.stdout)


def has_begun(path):
    with suppress(BadFile):
        return any(True for _ in read_episodes(path))
    return False


@pytest.mark.skipif(sys.platform == "win32", reason="it has no SIGINT to send")
@pytest.mark.parametrize("how", [(), ("--live", "--speed", "0"), ("--json",)])
def test_an_interrupt_ends_it_with_what_was_reached(tmp_path, how):
    """The history tells that it has begun, and that nothing of it is lost."""
    path, long = tmp_path / "vld.history", tmp_path / "long.csv"
    long.write_text("0,6\n60,12\n9000000,12\n", encoding="utf-8")
    with started(
        [
            sys.executable, "-m", "sojourn", "rehearse", VLD, "--trace", long, *QUICK,
            "--history", path, "--plot", tmp_path / "vld.png", *how,
        ],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
    ) as loop:  # fmt: skip
        while not has_begun(path):
            assert loop.poll() is None
        loop.send_signal(signal.SIGINT)
        said, error = loop.communicate()
    assert loop.returncode == 130, error
    assert "Traceback" not in error
    turns = len(list(read_episodes(path)))
    assert (tmp_path / "vld.png").exists()
    assert list(tmp_path.glob("vld.history*")) == [path]
    if "--json" in how:
        printed = json.loads(said)
        assert printed["score"] is None
        assert turns - len(printed["turns"]) in {0, 1}
    else:
        assert re.search(r"interrupted at .* of 2500:00:00, so there is no score", said)
        assert turns - int(re.search(r"turns +(\d+) in", said)[1]) in {0, 1}


# -- in a terminal -----------------------------------------------------------------------------


def drawn(view, *, width=90, height=30):
    console = Console(file=StringIO(), width=width, height=height, color_system=None)
    console.print(view)
    return console.file.getvalue()


@pytest.fixture
def one():
    topology = sj.Topology(
        name="one",
        arrivals=(sj.Arrival(name="in", per_s=2, into="a"),),
        operators=(sj.Operator(name="a", service_s=0.5),),
    )
    return View(topology, TARGET, 100.0)


def test_the_view_is_empty_before_the_first_turn(one):
    shown = drawn(one)
    assert shown.startswith("0:00:00 of 0:01:40\n")
    assert "operator" in shown
    assert not set("▁▂▃▄▅▆▇█") & set(shown)


def test_the_view_has_operators_charts_and_decisions(one):
    for number in (1, 2, 3):
        one.add(turn(number), told=False)
    changed = Cost(changed={"a": (2, 3)})
    one.add(turn(4, after=3, cost=changed, busy=1.3), told=True)
    shown = drawn(one)
    assert shown.startswith("0:00:40 of 0:01:40\n")
    assert re.search(r"^a +3 +70% +7 +██░", shown, re.MULTILINE)
    assert re.search(r"^load .*\n2 per s +█+ *$", shown, re.MULTILINE)
    assert re.search(r"^p95 ≤ 3 s .*\n4.00\d s ", shown, re.MULTILINE)
    assert re.search(r"^processors .*\n3 +", shown, re.MULTILINE)
    assert "now    too slow" in shown
    assert "0:00:40  up    2 -> 3  too slow" in shown
    assert max(map(len, shown.splitlines())) <= 90


def test_the_charts_leave_room_for_what_is_still_to_come(one):
    for number in range(1, 6):
        one.add(turn(number), told=False)
    load = next(line for line in drawn(one).splitlines() if line.startswith("2 per s"))
    assert load.count("█") == pytest.approx(71 / 2, abs=1)


def test_a_higher_terminal_has_higher_charts(one):
    one.add(turn(1), told=False)
    assert drawn(one, height=50).count("\n") == drawn(one, height=24).count("\n") + 6


def test_a_narrow_terminal_is_never_overrun(one):
    one.add(turn(4, after=3, cost=Cost(changed={"a": (2, 3)})), told=True)
    assert max(map(len, drawn(one, width=40).splitlines())) <= 40


def test_how_busy_processors_are_is_known_since_they_changed(one):
    one.add(turn(1, before=2, busy=1.0), told=False)
    one.add(turn(2, before=4, after=4, busy=0.4), told=False)
    one.add(turn(3, before=4, after=4, busy=0.6), told=False)
    assert re.search(r"^a +4 +50% ", drawn(one), re.MULTILINE)


def test_a_turn_that_saw_nothing_can_be_shown(one):
    seen = turn(1)
    nothing = Observation.unusable(0.0, 10.0, "no reports")
    one.add(replace(seen, episode=replace(seen.episode, observation=nothing)), told=False)
    assert re.search(r"^a +2 +░░", drawn(one), re.MULTILINE)


def test_of_many_operators_the_largest_are_shown():
    names = [f"op{n}" for n in range(12)]
    topology = sj.Topology(
        name="many",
        arrivals=(sj.Arrival(name="in", per_s=2, into="op0"),),
        operators=tuple(sj.Operator(name=name, service_s=0.5) for name in names),
    )
    view = View(topology, TARGET, 100.0)
    seen = turn(1, operator="op0")
    running = Plan.here({name: n + 1 for n, name in enumerate(names)})
    decision = replace(seen.episode.decision, before=running, after=running)
    view.add(replace(seen, episode=replace(seen.episode, decision=decision)), told=False)
    shown = drawn(view)
    assert "op11" in shown
    assert "op3" not in shown
    assert "and 4 more" in shown


def test_what_an_engine_says_cannot_command_the_terminal(one):
    one.add(turn(1, after=3, failure="\x1b[2J no"), told=True)
    shown = drawn(one)
    assert "\x1b" not in shown
    assert "up failed  2 -> 3  too slow; the engine:  [2J no" in shown


def test_a_rehearsal_can_be_drawn_where_there_is_no_terminal(trace):
    done = run(VLD, "--trace", trace, *QUICK, "--live", "--speed", 0)
    assert done.exit_code == 0
    assert "0:05:00 of 0:05:00" in done.stdout
    assert "sends to" in done.stdout
    assert "kept  " in done.stdout


def test_json_stays_alone_where_a_rehearsal_is_drawn(trace):
    done = run(VLD, "--trace", trace, *QUICK, "--live", "--speed", 0, "--json")
    assert json.loads(done.stdout)["name"] == "vld"
    assert "0:05:00 of 0:05:00" in done.stderr


def test_a_picture_is_drawn_no_faster_than_asked_for(one, monkeypatch):
    waits = []
    module = "sojourn.report.terminal.progress"
    monkeypatch.setattr(f"{module}.monotonic", lambda: 100.0 + sum(waits))
    monkeypatch.setattr(f"{module}.sleep", waits.append)
    with picture(one, 5.0, Console(file=StringIO())) as show:
        for number in (1, 2, 3):
            show(turn(number).episode)
    assert waits == [2.0, 2.0, 2.0]


def test_a_terminal_is_drawn_in(trace):
    """Through a pseudo terminal, which alone makes it one."""
    arguments = [
        sys.executable, "-m", "sojourn", "rehearse", str(VLD), "--trace", str(trace), *QUICK,
        "--speed", "0",
    ]  # fmt: skip
    program = (
        "import os, pty, sys\n"
        "os.environ.update(COLUMNS='90', LINES='40', TERM='xterm', NO_COLOR='1')\n"
        f"sys.exit(os.waitstatus_to_exitcode(pty.spawn({arguments!r})))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=False, timeout=120
    )
    shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", done.stdout.decode())
    assert done.returncode == 0
    assert "0:00:00 of 0:05:00" in shown
    assert "0:05:00 of 0:05:00" in shown
    assert "\x1b[?25h" in done.stdout.decode()  # the cursor is back


# -- charts ------------------------------------------------------------------------------------


def test_a_column_is_in_its_part_of_the_time():
    points = [(10.0, 1.0), (20.0, 3.0), (30.0, nan), (60.0, 5.0), (70.0, nan)]
    shown = columns(points, 100.0, 5, lambda part: sum(part) / len(part))
    assert shown[:3] == [2.0, 5.0, 5.0]
    assert all(map(isnan, shown[3:]))


@given(
    st.lists(st.floats(0, 1e6), min_size=1, max_size=30),
    st.integers(1, 6),
    st.floats(0.1, 1e6),
)
def test_a_chart_has_its_size_and_higher_values_are_higher(values, height, top):
    lines = [line.plain for line in draw_columns(values, height=height, top=top)]
    assert len(lines) == height
    assert {len(line) for line in lines} == {len(values)}
    blocks = " ▁▂▃▄▅▆▇█"
    heights = [sum(blocks.index(line[n]) for line in lines) for n in range(len(values))]
    in_order = [h for _, h in sorted(zip(values, heights, strict=True))]
    assert in_order == sorted(in_order)
    assert all(h > 0 for v, h in zip(values, heights, strict=True) if v > 0)


def test_a_limit_is_a_line_and_what_is_above_it_is_red():
    upper, middle, _ = draw_columns([1.0, 5.0, nan], height=3, top=6.0, limit=3.0)
    assert middle.plain == "┄█┄"
    assert upper.plain == " ▄ "
    assert [str(span.style) for span in upper.spans if span.start == 1] == ["red"]


# -- what drs is told --------------------------------------------------------------------------


def test_what_the_policy_was_told_is_said_and_done(trace):
    short = run_json(
        VLD, "--trace", trace, *P95, "--t-ra", "20s", "--drain", "20s", "--forecast"
    )
    long = run_json(
        VLD, "--trace", trace, *P95, "--set", "t_ra_s=20", "--set", "drain_s=20s",
        "--set", "forecast=yes",
    )  # fmt: skip
    assert short == long
    assert short["policy"] == "drs, p95 ≤ 3 s, t_ra_s=20s, drain_s=20s, forecast=yes"


def test_a_policy_from_the_current_folder_decides(trace, tmp_path, monkeypatch):
    (tmp_path / "stubborn.py").write_text(STUBBORN, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    mine = ("--policy", "stubborn:Stubborn", "--set", "said=never")
    done = run_json(VLD, "--trace", trace, *P95, *mine)
    assert done["policy"] == "stubborn:Stubborn, p95 ≤ 3 s, said=never"
    assert {turn["decision"]["reason"] for turn in done["turns"]} == {"never"}


# -- what is refused ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "a target is required; write --target-p95 3s"),
        ((*P95, "--policy", "oracle"), "unknown policy 'oracle'; write one of "),
        (
            (*P95, "--policy", "ds2", "--forecast"),
            "--forecast: ds2 has no option 'forecast'; it has scaling_factor, warm_up",
        ),
        ((*P95, "--policy", "ds2", "--t-ra", "9s"), "--t-ra: ds2 has no option 't_ra_s'"),
        ((*P95, "--policy", "static", "--t-ra", "9s"), "it has no options, so leave it out"),
        ((*P95, "--policy", "ds2", "--set", "margin=1"), "ds2 has no option 'margin'"),
        (
            (*P95, "--set", "margin"),
            "'margin' is not OPTION=VALUE; write, for example, margin=0.2",
        ),
        (
            (*P95, "--set", "margin=much"),
            "--set 'margin=much': 'much' is not a number; write, for example, 0.2",
        ),
        ((*P95, "--set", "margin=-1"), "caution: margin is -1.0; write 0 or more"),
        ((*P95, "--t-ra", "9"), "'9' has no unit"),
        ((*P95, "--drain", "0s"), "drs: drain_s is 0.0; write more than 0"),
        ((*P95, "--every", "1h"), "the load lasts 300 s, but the first look is after 3600 s"),
        ((*P95, "--pause", "a while"), "'a while' is not a time"),
        ((*P95, "--quiet-hours", "noon"), "'noon' is not FROM-UNTIL; write 08:00-18:00"),
        ((*P95, "--quiet-hours", "8-9"), "'8' is not a time of day; write 08:30"),
        ((*P95, "--quiet-hours", "24:30-25:00"), "'24:30' is not a time of day"),
        ((*P95, "--quiet-hours", "08:60-09:00"), "'08:60' is not a time of day"),
        ((*P95, "--quiet-hours", "08:00-08:00"), "quiet hours begin and end at 28800.0 s"),
        ((*P95, "--begins-at", "dawn"), "'dawn' is not a time of day; write 08:30"),
        ((*P95, "--history", VLD), "vld.yaml: is not a history"),
    ],
)
def test_bad_input_is_one_line_and_status_2(trace, arguments, said):
    done = run(VLD, "--trace", trace, *arguments)
    assert done.exit_code == 2
    assert said in done.stderr
    assert done.stderr.strip().count("\n") == 0
    assert not done.stdout


def test_a_trace_that_is_none_is_refused(tmp_path):
    for content, said in (
        ("once upon\na time", "in the header 'once upon' no column is a time"),
        ("0,6\n2,6\n", "the load lasts 2 s, but the first look is after 3 s"),
    ):
        (tmp_path / "rates.csv").write_text(content, encoding="utf-8")
        done = run(VLD, "--trace", tmp_path / "rates.csv", *P95)
        assert done.exit_code == 2
        assert said in done.stderr


def test_help_teaches():
    assert "sojourn rehearse examples/vld.yaml --trace" in run("--help").stdout

"""`sojourn history` as a user runs it: what it prints, and how it ends."""

import json
import os
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from math import inf, nan
from pathlib import Path

import pytest
from typer.testing import CliRunner

import sojourn as sj
from sojourn.act.policy import policy
from sojourn.cli import app
from sojourn.decide.objective import Slice
from sojourn.decide.plan import Expected, Plan
from sojourn.engine import Cost
from sojourn.errors import BadInput
from sojourn.history import HistoryFile, Run, read
from sojourn.knowledge import Decision, Episode, JudgedSlice
from sojourn.loop import Loop
from sojourn.measure.observation import Moments, Observation, ObservedOperator
from sojourn.measure.sketch import Sketch
from sojourn.report.plot.history import draw_history
from sojourn.report.turns import Totals, lines, turns
from sojourn.service.control import serving
from sojourn.service.folders import state_folder
from sojourn.service.name_lock import NameLock
from sojourn.simulate.simulator import Simulator
from sojourn.simulate.workload import Rates, Workload

VLD = sj.read_topology(Path(__file__).parents[3] / "examples" / "vld.yaml").scaled(6 / 13)
ONE = sj.Topology(
    name="one",
    arrivals=(sj.Arrival(name="in", per_s=2, into="a"),),
    operators=(sj.Operator(name="a", service_s=0.5),),
)
TARGET = sj.Target("p95", 3.0)
NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def run(*arguments):
    return CliRunner().invoke(app, ["history", *map(str, arguments)])


def run_json(*arguments):
    done = run(*arguments, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def turn(number, *, after=2, before=2, expected_s=None, cost=None, failure="", reason="well"):
    """Return a turn of ten seconds in which roots took from 1 to 4 seconds."""
    at_s, times_s = 10.0 * number, Sketch.of([1.0, 2.0, 3.0, 4.0])
    timed = Moments(4, 5.0, 10.0)
    seen = ObservedOperator(
        name="a", wanted=before, running=before, backlog=1, arrivals_per_s=2.0 * number,
        served_per_s=2.0, served=20.0, service=timed, wait=timed,
    )  # fmt: skip
    expected = (
        None
        if expected_s is None
        else Expected(
            statistic="p95", seconds=expected_s, arrivals_per_s=2.0, sojourns_s={"a": 5.0}
        )
    )
    return Episode(
        observation=Observation(
            since_s=at_s - 10, at_s=at_s, operators={"a": seen}, arrivals_per_s=2.0 * number,
            completed_per_s=2.0, completions=times_s, sums=times_s,
        ),
        decision=Decision(
            at_s=at_s, before=Plan.here({"a": before}),
            after=Plan.here({"a": after}, reason=reason, expected=expected),
        ),
        cost=cost,
        failure=failure,
    )  # fmt: skip


def blind(number):
    """Return a turn that saw nothing."""
    nothing = Observation.unusable(10.0 * (number - 1), 10.0 * number, "no reports")
    return replace(turn(number, reason="nothing was seen"), observation=nothing)


def written(path, episodes, *, topology=ONE, target=TARGET):
    with HistoryFile(path) as history:
        history.begin(
            Run(
                topology=topology,
                plan=Plan.here(dict.fromkeys(topology.operator, 2)),
                started_at=NOON,
                every_s=10,
                policy="drs for p95 ≤ 3 s",
                target=target,
            )
        )
        for episode in episodes:
            history.append(episode)
    return path


CHANGED = Cost(pause_s=7.0, replayed=3, changed={"a": (2, 3)})
SHORT = [
    *(turn(n, expected_s=2.0, reason=f"2.{n} s is expected") for n in (1, 2, 3)),
    turn(4, after=3, cost=CHANGED, expected_s=8.0, reason="too slow: 3"),
    turn(5, before=3, after=3, reason="3.1 s is expected"),
    blind(6),
    turn(7, after=4, failure="no room", reason="too slow: 4"),
    turn(8, after=4, failure="no room", reason="too slow: 4"),
    turn(9, after=1, expected_s=inf, reason="too much: 1"),
]


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """Return the history of a loop on the simulator, while the load rose and fell."""
    path = tmp_path_factory.mktemp("history") / "vld.history"
    rates = Rates.steps((0, 6), (300, 12), (700, 6))
    engine = Simulator(workload=Workload(rates={"frames": rates}), seed=1, sample_every=1)
    with engine:
        engine.start(VLD, Plan.here({"extract": 5, "match": 5, "aggregate": 1}))
        loop = Loop(engine, VLD, policy("drs", target=TARGET), every_s=10)
        return written(path, loop.run(1500), topology=VLD)


def rows(shown):
    """Return the cells of the table of turns, but for those that are empty."""
    body = shown.split("─\n")[1].split("\n\n")[0]
    return [re.split(r" {2,}", line) for line in body.rstrip("\n").split("\n")]


def times(shown):
    return [cells[0] for cells in rows(shown)]


def test_turns_that_are_alike_are_one_line(tmp_path):
    done = run(written(tmp_path / "h", SHORT))
    assert done.exit_code == 0
    assert rows(done.stdout) == [
        ["0:00:30", "3", "4", "4.001 s", "2 s", "2", "hold", "2.3 s is expected"],
        ["0:00:40", "8", "4.001 s", "2 s", "3", "up", "too slow: 3"],
        ["0:00:50", "10", "4.001 s", "8 s", "3", "hold", "3.1 s is expected"],
        ["0:01:00", "2", "hold", "nothing was seen"],
        ["0:01:20", "2", "15", "4.001 s", "2", "up failed", "too slow: 4; the engine: no room"],
        ["0:01:30", "18", "4.001 s", "2", "down advised", "too much: 1"],
    ]
    head = done.stdout.split("\n")
    assert head[0] == "one · run 1 of 1"
    assert head[1] == "drs for p95 ≤ 3 s; started 2026-03-01 12:00:00 UTC"
    assert re.split(r" {2,}", head[3]) == [
        "time", "turns", "per s", "p95", "expected", "processors", "done", "why",
    ]  # fmt: skip


def folded(*reasons):
    episodes = [turn(n, reason=reason) for n, reason in enumerate(reasons, start=1)]
    return [(line.number, line.reason) for line in lines(turns(episodes))]


def test_between_changes_each_kind_of_reason_is_told_once():
    assert folded("3 wait", "4 wait", "5 fit", "all well") == [
        (2, "4 wait"),
        (1, "5 fit"),
        (1, "all well"),
    ]
    assert folded("3 wait", "5 fit", "all well", "6 fit", "full", "2 fit", "late") == [
        (1, "3 wait"),
        (5, "3 x 2 fit | 1 x all well | 1 x full"),
        (1, "late"),
    ]
    assert folded("a", "b", "c", "d", "a") == [(5, "2 x a | 1 x b | 1 x c | …")]


def test_of_many_operators_the_processors_are_added_up(tmp_path):
    many = Plan.here({f"op{n}": n for n in range(1, 10)})
    decision = replace(turn(1).decision, before=many, after=many)
    path = written(tmp_path / "h", [replace(turn(1), decision=decision)])
    assert "45" in rows(run(path).stdout)[0]


def test_a_summary_says_what_it_came_to(tmp_path):
    said = run(written(tmp_path / "h", SHORT)).stdout
    for words in (
        "turns       9 in 0:01:30, 1 of them unusable",
        "changes     1: 1 up, 2 up failed, 1 down advised",
        "their cost  7 s of pauses in all, 3 records replayed",
        "target      p95 ≤ 3 s: above it in 8 of 8 turns",
    ):
        assert words in said
    # 2 s of 4 s was said three times; 8 s of 4 s was for a turn with a pause, and counts not
    assert "latency         3       -50.0%            50.0%" in said
    assert "a               3      +100.0%           100.0%" in said


def test_every_turn_can_have_its_own_line(tmp_path):
    path = written(tmp_path / "h", SHORT)
    every = run(path, "--all").stdout
    assert times(every) == [f"0:0{n // 6}:{n % 6}0" for n in range(1, 10)]
    assert rows(every)[0][-1] == "2.1 s is expected"


def test_only_the_decisions_to_change_can_be_shown(tmp_path):
    shown = run(written(tmp_path / "h", SHORT), "--decisions").stdout
    assert times(shown) == ["0:00:40", "0:01:20", "0:01:30"]


def test_the_last_lines_are_shown_and_the_summary_is_of_all(tmp_path):
    path = written(tmp_path / "h", SHORT)
    done = run(path, "--last", 2)
    assert "4 earlier lines; --last 0 shows all" in done.stdout
    assert times(done.stdout) == ["0:01:20", "0:01:30"]
    assert "turns       9 in" in done.stdout
    assert "before these" not in run(path, "--last", 0).stdout


def test_a_fold_ends_where_the_statistic_or_what_runs_changes(tmp_path):
    by_mean = turn(2)
    expected = Expected(statistic="mean", seconds=1.0, arrivals_per_s=2.0)
    other = replace(by_mean.decision, after=Plan.here({"a": 2}, expected=expected))
    path = written(
        tmp_path / "h", [turn(1), replace(by_mean, decision=other), turn(3, before=3, after=3)]
    )
    shown = rows(run(path).stdout)
    assert len(shown) == 3
    assert "p95 4.001 s" in shown[0]
    assert "2.5 s" in shown[1]


def test_what_an_engine_says_cannot_command_the_terminal(tmp_path):
    said = run(written(tmp_path / "h", [turn(1, after=3, failure="\x1b[2J\nbad\udce9")])).stdout
    assert "\x1b" not in said
    assert "well; the engine:  [2J bad\n" in said


def test_a_loop_without_a_model_has_nothing_to_compare(tmp_path):
    path = written(tmp_path / "h", [turn(1), turn(2)], target=None)
    said = run(path).stdout
    assert "2.5 s" in rows(said)[0]  # the mean
    assert "expected    no prediction could be compared with a measurement" in said
    assert "target  " not in said


def test_a_run_without_a_turn_is_said_to_have_none(tmp_path):
    path = written(tmp_path / "h", [])
    done = run(path)
    assert done.exit_code == 0
    assert "turns       0 in 0:00:00" in done.stdout
    assert run_json(path)["turns"] == []
    refused = run(path, "--plot", tmp_path / "h.png")
    assert refused.exit_code == 2
    assert "there is nothing to plot: the loop has not had a turn yet" in refused.stderr


# -- orders by hand, and a target for each turn ------------------------------------------------


def told(at_s, reason, target):
    """Return an order by hand between two turns."""
    same = Plan.here({"a": 2}, reason=reason)
    return Episode(
        observation=Observation.unusable(at_s, at_s, "not an observation of the loop"),
        decision=Decision(at_s=at_s, before=same, after=same),
        target=target,
    )


FAST = sj.Target("mean", 1.0)
ORDERED = [
    *(replace(turn(n, expected_s=2.0), target=TARGET) for n in (1, 2)),
    told(25.0, "set with `sojourn set` by anna: mean ≤ 1 s", FAST),
    *(replace(turn(n), target=FAST) for n in (3, 4, 5)),
]


def test_orders_have_a_line_of_their_own_and_count_as_no_change(tmp_path):
    path = written(tmp_path / "h", ORDERED)
    shown = run(path).stdout
    assert [row[-2:] for row in rows(shown)] == [
        ["hold", "well"],
        ["note", "set with `sojourn set` by anna: mean ≤ 1 s"],
        ["hold", "well"],
    ]
    assert "turns       5 in 0:00:50\nchanges     0\n" in shown
    assert rows(run(path, "--decisions").stdout) == [rows(shown)[1]]


def test_each_turn_is_judged_by_its_own_target(tmp_path):
    path = written(tmp_path / "h", ORDERED)
    assert "target      p95 ≤ 3 s: above it in 2 of 2 turns\n" in run(path).stdout
    assert "            mean ≤ 1 s: above it in 3 of 3 turns\n" in run(path).stdout
    summary = run_json(path)["summary"]
    assert summary["targets"] == [
        {"statistic": "p95", "seconds": 3.0, "measured": 2, "above_target": 2},
        {"statistic": "mean", "seconds": 1.0, "measured": 3, "above_target": 3},
    ]
    assert (summary["measured"], summary["above_target"]) == (5, 5)


def test_what_is_expected_of_a_turn_is_so_beyond_an_order(tmp_path):
    turns_told = run_json(written(tmp_path / "h", ORDERED))["turns"]
    assert turns_told[3]["expected"]["seconds"] == 2.0
    assert turns_told[2]["expected"] is None


def test_a_history_of_turns_without_targets_is_judged_by_that_of_its_run(tmp_path):
    path = written(tmp_path / "h", ORDERED)
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("UPDATE turns SET record = json_set(record, '$.target', json('null'))")
    assert "target      p95 ≤ 3 s: above it in 5 of 5 turns\n" in run(path).stdout


def test_a_picture_shows_each_target_and_orders(tmp_path):
    text = picture(tmp_path, ORDERED, TARGET)
    for words in ("p95 ≤ 3 s", "then mean ≤ 1 s", "note"):
        assert f"<!-- {words} -->" in text
    assert "unusable" not in text


# -- which file it is --------------------------------------------------------------------------


@pytest.mark.usefixtures("places")
def test_without_a_file_the_history_of_the_application_that_ran_last_is_found():
    for name in ("shop", "mill"):
        state_folder(name).mkdir(parents=True)
        written(state_folder(name) / "history", SHORT)
    mill, shop = state_folder("mill") / "history", state_folder("shop") / "history"
    os.utime(mill, (2e9, 2e9))
    assert f"from {mill}\n" in run().stdout
    assert f"from {shop}\n" in run("--app", "shop").stdout
    assert run_json("--app", "shop")["file"] == str(shop)
    done = run("--app", "mine")
    assert done.exit_code == 2
    assert (
        "there is no history of an application 'mine'; known applications: mill, shop"
        in done.stderr
    )
    assert "both given" in run(shop, "--app", "shop").stderr
    assert "no file mill; mill is an application: write --app mill" in run("mill").stderr


@pytest.mark.usefixtures("places")
def test_of_an_application_that_runs_the_history_is_that_which_it_writes(tmp_path):
    elsewhere = written(tmp_path / "elsewhere", SHORT)
    state = tmp_path / "mill"
    state.mkdir()
    own = written(state / "history", SHORT)
    for told_of, found in (({"history": str(elsewhere)}, elsewhere), ({}, own)):
        with (
            NameLock("mill", address="apps:app", state=state, logs=state / "logs") as claim,
            serving(claim.socket, claim.token, lambda _request, told_of=told_of: told_of),
        ):
            assert f"from {found}\n" in run().stdout
            assert f"from {found}\n" in run("--app", "mill").stdout


def test_runs_are_told_apart(tmp_path):
    path = written(tmp_path / "h", [turn(1)])
    written(path, [turn(1), turn(2)])
    assert "one · run 2 of 2" in run(path).stdout
    assert "turns       1 in" in run(path, "--run", 1).stdout
    assert (run_json(path)["run"], run_json(path, "--run", 1)["run"]) == (2, 1)
    refused = run(path, "--run", 3)
    assert refused.exit_code == 2
    assert "has no run 3; it has runs 1 to 2" in refused.stderr


def test_json_has_everything(tmp_path):
    printed = run_json(written(tmp_path / "h", SHORT))
    assert list(printed) == [
        "file", "name", "run", "started_at", "every_s", "policy", "target", "allocation",
        "summary", "turns",
    ]  # fmt: skip
    assert printed["target"] == {"statistic": "p95", "seconds": 3.0}
    assert printed["started_at"] == "2026-03-01T12:00:00+00:00"
    assert list(printed["turns"][0]) == [
        "since_s", "at_s", "usable", "reason", "notes", "arrivals_per_s", "completed_per_s",
        "streams", "roots", "mean_s", "percentiles_s", "operators", "statistic", "measured_s",
        "expected", "decision", "done", "slices", "cost", "failure", "target",
    ]  # fmt: skip
    first, changed, after, nothing = (printed["turns"][n] for n in (0, 3, 4, 5))
    assert first["expected"] is None
    assert first["decision"]["expects"]["seconds"] == 2.0
    assert first["operators"]["a"]["sojourn_s"] == 2.5
    assert first["operators"]["a"]["arrival_scv"] is None
    assert changed["cost"] == {"pause_s": 7.0, "replayed": 3, "changed": {"a": [2, 3]}}
    assert after["expected"]["seconds"] == 8.0
    assert (nothing["usable"], nothing["reason"]) == (False, "no reports")
    assert nothing["arrivals_per_s"] is nothing["measured_s"] is nothing["mean_s"] is None
    assert printed["turns"][8]["decision"]["expects"]["seconds"] is None  # it never ends
    assert printed["summary"]["done"] == {
        "hold": 5, "up": 1, "up failed": 2, "down advised": 1,
    }  # fmt: skip
    assert printed["summary"]["prediction_error"]["number"] == 3
    assert printed["summary"]["operators"]["a"]["mean"] == pytest.approx(1.0)


def judged(number, *, kept, cause="", level=0.15):
    since_s = 60.0 * number
    return JudgedSlice(
        slice=Slice(since_s, since_s + 60, 100, 97 if kept else 80, 123.0),
        kept=kept,
        objective=sj.Objective(target=sj.Target("p95", 3.0)),
        level=level,
        cause=cause,
    )


JUDGED = [
    replace(turn(1), judged=(judged(0, kept=True),)),
    replace(turn(2), judged=(judged(1, kept=False, cause="a batch ended"),)),
    replace(turn(3), judged=(judged(2, kept=False, level=0.25), judged(3, kept=True))),
]


def test_slices_are_counted_and_those_that_were_missed_are_listed(tmp_path):
    told = run(written(tmp_path / "h", JUDGED)).output
    assert (
        "kept        p95 ≤ 3 s in 2 of 4 slices of 60 s, 99% are required; plans are for 15% "
        "more load; 1 missed because a batch ended\n"
        "missed      0:01:00 to 0:02:00: 20 of 100 roots took longer (a batch ended)\n"
        "            0:02:00 to 0:03:00: 20 of 100 roots took longer\n"
    ) in told
    assert "above it in" not in told


def test_json_has_the_slices(tmp_path):
    printed = run_json(written(tmp_path / "h", JUDGED))
    assert printed["summary"]["objectives"] == [
        {
            "target": {"statistic": "p95", "seconds": 3.0}, "slice_s": 60.0, "kept": 0.99,
            "judged": 4, "missed": 2, "level": 0.15, "excused": {"a batch ended": 1},
        }
    ]  # fmt: skip
    assert printed["turns"][2]["slices"][0] == {
        "since_s": 120.0, "until_s": 180.0, "born": 100, "in_time": 80, "kept": False,
        "cause": "", "level": 0.25,
    }  # fmt: skip


def test_json_takes_any_text(tmp_path):
    printed = run_json(written(tmp_path / "h", [turn(1, after=3, failure="caf\udce9")]))
    assert printed["turns"][0]["failure"] == "caf\\udce9"


def test_errors_of_predictions_are_those_that_the_loop_knows(ran):
    summary, known = run_json(ran)["summary"], read(ran)
    error, errors = known.prediction_error(), known.prediction_errors()
    assert summary["turns"] == len(known.episodes) == 150
    assert summary["prediction_error"]["number"] == error.number > 100
    assert summary["prediction_error"]["mean"] == pytest.approx(error.mean)
    assert summary["prediction_error"]["spread"] == pytest.approx(error.spread)
    assert list(summary["operators"]) == ["extract", "match", "aggregate"]
    for name, each in errors.items():
        assert summary["operators"][name]["mean"] == pytest.approx(each.mean)


def test_what_is_expected_of_a_turn_is_what_the_loop_compares_it_with(ran):
    known = read(ran)
    expected = [t.expected for t in turns(known.episodes) if t.expected is not None]
    assert expected == [expectation for expectation, _ in known.outcomes()]


def test_a_real_run_reads_well(ran):
    done = run(ran)
    assert done.exit_code == 0
    kinds = [cells[-2] for cells in rows(done.stdout)]
    assert 5 < len(kinds) < 50
    assert {"hold", "up", "down"} <= set(kinds)
    assert sum(line.number for line in lines(turns(read(ran).episodes))) == 150
    assert "vld · run 1 of 1" in done.stdout


def test_nothing_is_counted_before_it_passes():
    totals = Totals(ONE, None)
    passing = totals.counting(turns(SHORT))
    assert (totals.turns, totals.error, totals.errors) == (0, None, {})
    next(passing)
    assert totals.turns == 1


def test_a_terminal_gets_lines_that_fit(ran):
    """Through a pseudo terminal, which alone makes it one."""
    program = (
        "import os, pty, sys\n"
        "os.environ.update(COLUMNS='90', TERM='xterm', NO_COLOR='1')\n"
        f"pty.spawn([sys.executable, '-m', 'sojourn', 'history', {str(ran)!r}])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=False, timeout=60
    )
    shown = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout.decode())
    assert "vld · run 1 of 1" in shown
    assert 85 <= max(map(len, shown.splitlines())) <= 90


# -- pictures ----------------------------------------------------------------------------------


def test_a_plot_is_a_picture(ran, tmp_path):
    path = tmp_path / "deep" / "vld.png"
    assert run(ran, "--plot", path).exit_code == 0
    assert path.read_bytes().startswith(b"\x89PNG")


def picture(tmp_path, episodes, *arguments, **options):
    """Return the text in the picture."""
    path = tmp_path / "h.svg"
    draw_history(episodes, path, *arguments, **options)
    return path.read_text(encoding="utf-8")


def test_a_picture_says_what_it_shows(tmp_path):
    text = picture(tmp_path, SHORT, TARGET, title="rehearsed")
    for words in (
        "rehearsed", "roots per second", "p95, seconds", "processors", "arrivals", "measured",
        "expected", "p95 ≤ 3 s", "unusable", "up", "up failed", "down advised", "seconds",
    ):  # fmt: skip
        assert f"<!-- {words} -->" in text
    assert text.count("<!-- up failed -->") == 1


def test_a_target_may_be_mere_seconds_or_none(tmp_path):
    assert "<!-- target 3 s -->" in picture(tmp_path, SHORT, 3.0)
    assert "target" not in picture(tmp_path, iter(SHORT), None)


def test_the_axis_has_the_unit_that_suits_it(tmp_path):
    def lasting(span_s):
        part = span_s / 50
        seen = [Observation(since_s=n * part, at_s=(n + 1) * part) for n in range(50)]
        return [replace(turn(1), observation=each) for each in seen]

    for span_s, unit in ((60, "seconds"), (600, "minutes"), (20_000, "hours"), (5e5, "days")):
        assert f"<!-- {unit} -->" in picture(tmp_path, lasting(span_s))


def test_latencies_far_apart_are_drawn_by_powers_of_ten(tmp_path):
    slow = replace(turn(2).observation, sums=Sketch.of([900.0]))
    far = [turn(1), replace(turn(2), observation=slow)]
    assert "10^{3}" in picture(tmp_path, far) or "10^{2}" in picture(tmp_path, far)


def test_of_many_operators_the_largest_are_told_apart(tmp_path):
    many = Plan.here({f"op{n}": n + 1 for n in range(20)})
    decision = replace(turn(1).decision, before=many, after=many)
    seen = replace(turn(1).observation, operators={})
    text = picture(tmp_path, [replace(turn(1), decision=decision, observation=seen)])
    assert "<!-- 13 others -->" in text
    assert "<!-- op19 -->" in text
    assert "<!-- op3 -->" not in text


def test_what_is_only_advised_is_marked_when_it_changes(tmp_path):
    wished = [turn(n, after=3 if n < 40 else 4) for n in range(1, 60)]
    few, many = picture(tmp_path, wished[:41]), picture(tmp_path, wished)
    assert few.count("stroke-dasharray") == many.count("stroke-dasharray") == 2 * 3 + 1


def test_what_never_ends_or_was_not_measured_is_left_out(tmp_path):
    odd = [turn(1, expected_s=inf), turn(2, expected_s=nan), blind(3)]
    assert "<!-- expected -->" not in picture(tmp_path, odd)


def test_nothing_cannot_be_drawn(tmp_path):
    with pytest.raises(BadInput, match="nothing to plot"):
        draw_history([], tmp_path / "h.png")


def test_without_matplotlib_a_plot_says_what_to_install(tmp_path, monkeypatch):
    path = written(tmp_path / "h", SHORT)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    done = run(path, "--plot", tmp_path / "h.png")
    assert done.exit_code == 2
    assert "install sojourn[plot]" in done.stderr
    assert run(path).exit_code == 0


# -- what is refused ---------------------------------------------------------------------------


def test_bad_input_is_one_line_and_status_2(tmp_path):
    text = tmp_path / "notes.txt"
    text.write_text("no history", encoding="utf-8")
    path = written(tmp_path / "h", SHORT)
    for arguments, said in (
        ((tmp_path / "missing",), "missing: cannot be read: No such file or directory; check"),
        ((tmp_path,), "cannot be read: Is a directory"),
        ((text,), "notes.txt: is not a history; name a file that sojourn wrote"),
        ((path, "--plot", tmp_path / "h.nothing"), "h.nothing: cannot be written"),
    ):
        done = run(*arguments)
        assert done.exit_code == 2
        assert said in done.stderr
        assert done.stderr.strip().count("\n") == 0
        assert not done.stdout


def test_help_teaches():
    assert "sojourn history vld.history" in run("--help").stdout

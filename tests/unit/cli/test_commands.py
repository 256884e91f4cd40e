"""Commands as a user runs them, in one process: what they print, and how they end."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import sojourn as sj
from sojourn.cli import app

EXAMPLES = Path(__file__).parents[3] / "examples"
VLD = str(EXAMPLES / "vld.yaml")
FPD = str(EXAMPLES / "fpd.yaml")
BEST = "extract=10,match=11,aggregate=1"


def run(*arguments, text=None):
    return CliRunner().invoke(
        app, [str(a) for a in arguments], input=text, env={"COLUMNS": "120"}
    )


def run_json(*arguments):
    done = run(*arguments, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_predict_prints_its_fixed_fields():
    printed = run_json("predict", VLD, "--allocation", BEST)
    assert list(printed) == [
        "name", "model", "processors", "allocation", "mean_s", "completion_mean_s", "std_s",
        "percentiles_s", "operators",
    ]  # fmt: skip
    assert list(printed["percentiles_s"]) == ["p50", "p90", "p95", "p99"]
    assert list(printed["operators"]["match"]) == [
        "arrivals_per_s", "utilisation", "sojourn_s", "visits", "processors",
    ]  # fmt: skip
    assert printed["allocation"] == {"extract": 10, "match": 11, "aggregate": 1}
    assert printed["processors"] == 22
    parts = [o["visits"] * o["sojourn_s"] for o in printed["operators"].values()]
    assert sum(parts) == pytest.approx(printed["mean_s"])
    assert printed["completion_mean_s"] == printed["mean_s"]


def test_plan_adds_target_and_reason():
    printed = run_json("plan", VLD, "--processors", 22)
    assert printed["target"] == {"processors": 22}
    assert "16 processors are the minimum for stability" in printed["reason"]
    assert list(printed["allocation"].values()) == [10, 11, 1]
    printed = run_json("plan", VLD, "--target-p95", "3s")
    assert printed["target"] == {"statistic": "p95", "seconds": 3.0}
    assert printed["percentiles_s"]["p95"] <= 3.0
    assert printed["least_processors"] == printed["processors"] == 18


@pytest.mark.parametrize(
    ("file", "processors", "allocation"),
    [(VLD, 22, [10, 11, 1]), (VLD, 17, [8, 8, 1]), (FPD, 22, [6, 13, 3])],
)
@pytest.mark.parametrize("model", ["mmk", "gigk"])
def test_the_examples_have_the_optima_of_the_papers(file, processors, allocation, model):
    printed = run_json("plan", file, "--processors", processors, "--model", model)
    assert list(printed["allocation"].values()) == allocation


@pytest.mark.parametrize(("model", "allocation"), [("mmk", [3, 3, 1]), ("gigk", [2, 4, 1])])
def test_bursts_part_the_models_as_in_the_paper(model, allocation):
    """DRS-17 section V-D."""
    bursty = EXAMPLES / "vld-bursty.yaml"
    printed = run_json("plan", bursty, "--processors", 7, "--model", model)
    assert list(printed["allocation"].values()) == allocation


def test_whole_nodes():
    nodes = ("--slots-per-node", 5, "--reserved", 3)
    four = run_json("plan", VLD, "--processors", 21, *nodes)
    five = run_json("plan", VLD, "--target-mean", "1.2s", *nodes)
    assert (four["nodes"], four["processors"]) == (4, 17)
    assert (five["nodes"], five["processors"]) == (5, 22)


def test_a_topology_has_no_plans_of_spark():
    done = run("explain", VLD, "--allocation", BEST, "--spark")
    assert done.exit_code == 2
    assert "is a topology, which has no queries" in done.stderr


def test_explain_tells_gains_headroom_and_neighbours():
    printed = run_json("explain", VLD, "--processors", 16, "--target-mean", "3s")
    assert printed["operators"]["extract"]["binds"] == "keeping up"
    assert printed["operators"]["extract"]["last_gain_s"] is None
    assert printed["headroom"]["binds"] == "mean ≤ 3 s breaks"
    assert printed["neighbours"][0]["mean_s"] is None
    given_by_hand = run_json("explain", VLD, "--allocation", BEST)
    assert given_by_hand["floor_s"] == pytest.approx(1.07)
    assert len(given_by_hand["neighbours"]) == 4


def test_tables_tell_the_same():
    shown = run("explain", VLD, "--processors", 22, "--target-p95", "4s").stdout
    for word in (
        "extract",
        "aggregate",
        "completion",
        "p99",
        "with one processor moved",
        "headroom",
    ):
        assert word in shown
    shown = run("plan", VLD, "--target-p95", "3s", "--slots-per-node", 5).stdout
    assert "nodes       4" in shown
    assert "why         18 processors are the fewest that meet p95 ≤ 3 s" in shown
    assert "cannot keep up" in run("explain", VLD, "--processors", 16).stdout


COMPUTING = """
format: 1
name: pair
cores: 2
arrivals: {in: {per_s: 20, into: parse}}
operators:
  parse: {service_s: 0.06, cpu_s: 0.06, emits: {fetch: 1}}
  fetch: {service_s: 0.2, cpu_s: 0.02}
"""


def test_what_sharing_cores_costs_is_said():
    said = "cores       computing uses 1.6 of 2 cores and takes 1.94 times"
    for arguments in (
        ("predict", "-", "--allocation", "parse=4,fetch=8"),
        ("explain", "-", "--allocation", "parse=4,fetch=8"),
    ):
        done = run(*arguments, text=COMPUTING)
        assert done.exit_code == 0, done.stderr
        assert said in done.stdout
    planned = run("plan", "-", "--target-mean", "500ms", text=COMPUTING)
    assert "cores       computing uses 1.6 of 2 cores" in planned.stdout
    printed = json.loads(run("plan", "-", "--processors", 12, "--json", text=COMPUTING).stdout)
    assert list(printed["computing"]) == ["demand_cores", "cores", "stretch"]
    assert printed["computing"]["demand_cores"] == pytest.approx(1.6)


def test_one_processor_more_may_make_it_slower():
    done = run("explain", "-", "--allocation", "parse=30,fetch=8", text=COMPUTING)
    rows = [line.split() for line in done.stdout.splitlines() if line.startswith("parse")]
    assert any(row[1].startswith("+") and row[-1] == "gain" for row in rows)


def test_cores_that_cannot_keep_up_are_status_3():
    busy = COMPUTING.replace("per_s: 20", "per_s: 30")
    done = run("plan", "-", "--processors", 50, text=busy)
    assert done.exit_code == 3
    assert (
        "the load needs 2.4 cores, but there are 2; more processors do not help" in done.stderr
    )


def test_the_simulator_is_compared_with_cores_for_all():
    done = run(
        "simulate", "-", "--allocation", "parse=4,fetch=8", "--records", 1000, text=COMPUTING
    )
    assert done.exit_code == 0, done.output
    assert "cores       " not in done.stdout


def test_a_single_operator_has_no_neighbours_to_show():
    one = {
        "format": 1,
        "name": "one",
        "arrivals": {"in": {"per_s": 0.1, "into": "a"}},
        "operators": {"a": {"service_s": 0}},
    }
    shown = run("explain", "-", "--processors", 1, text=json.dumps(one))
    assert shown.exit_code == 0
    assert "with one processor moved" not in shown.stdout


def test_a_topology_may_come_from_standard_input():
    text = Path(VLD).read_text(encoding="utf-8")
    assert run("plan", "-", "--processors", "22", text=text).exit_code == 0
    broken = run("plan", "-", "--processors", "22", text="a: [")
    assert broken.exit_code == 2
    assert broken.stderr.startswith("sojourn: standard input:1: is not valid YAML")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("plan", "nowhere.yaml", "--processors", 5), "nowhere.yaml: cannot be read"),
        (("plan", VLD), "a plan needs --processors or a target"),
        (("plan", VLD, "--processors", 0), "0 is not a valid number of processors"),
        (("plan", VLD, "--processors", 10**9), "too many"),
        (("plan", VLD, "--target-mean", "500"), "'500' has no unit; write 500ms"),
        (("plan", VLD, "--target-mean", "soon"), "'soon' is not a time"),
        (("plan", VLD, "--target-mean", "5 parsecs"), "'5 parsecs' is not a time"),
        (("plan", VLD, "--target-mean", "0s"), "0.0 is not a latency in seconds"),
        (("plan", VLD, "--target-mean", "1s", "--target-p95", "1s"), "write one of them"),
        (
            ("plan", VLD, "--processors", 22, "--model", "mg1"),
            "unknown station model 'mg1'",
        ),
        (("plan", VLD, "--processors", 22, "--model", "no.such"), "unknown station model"),
        (("plan", VLD, "--processors", 22, "--reserved", 3), "without --slots-per-node"),
        (("plan", VLD, "--processors", 22, "--slots-per-node", 0), "0 slots per node"),
        (("predict", VLD, "--allocation", "extract=10"), "no processors for match, aggregate"),
        (("predict", VLD, "--allocation", BEST + ",x=1"), "there is no operator 'x'"),
        (
            ("predict", VLD, "--allocation", "extract=-1"),
            "'extract=-1' is not OPERATOR=PROCESSORS",
        ),
        (("predict", VLD, "--allocation", "extract=0,match=1,aggregate=1"), "extract: 0 is no"),
        (("predict", VLD, "--allocation", ""), "'' is not OPERATOR=PROCESSORS"),
        (("predict", VLD, "--allocation", "match=1,match=2"), "match occurs twice"),
    ],
)
def test_bad_input_is_one_line_and_status_2(arguments, said):
    done = run(*arguments)
    assert done.exit_code == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert not done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("plan", VLD, "--processors", 15), "at least 16 are needed (extract=7, match=8, aggr"),
        (("plan", VLD, "--target-mean", "1s"), "without any waiting it is still 1.07 s"),
        (("plan", VLD, "--target-p95", "2s"), "without any waiting it is still 2.51"),
        (("plan", VLD, "--target-mean", "1.12s", "--processors", 20), "22 are needed"),
        (
            ("predict", VLD, "--allocation", "extract=6,match=9,aggregate=1"),
            "extract: 6 processors",
        ),
    ],
)
def test_what_cannot_be_done_says_what_could_and_status_3(arguments, said):
    done = run(*arguments)
    assert done.exit_code == 3
    assert said in done.stderr


def test_unknown_options_are_status_2():
    assert run("plan", VLD, "--procesors", 5).exit_code == 2


@settings(max_examples=150, deadline=None)
@given(allocation=st.text(max_size=30), target=st.text(max_size=10))
def test_any_text_in_an_option_is_answered_without_a_traceback(allocation, target):
    predicted = run("predict", VLD, "--allocation", allocation)
    planned = run("plan", VLD, f"--target-mean={target}")
    assert predicted.exit_code in (0, 2, 3)
    assert planned.exit_code in (0, 2, 3)


def test_a_plot_is_a_picture(tmp_path):
    for name in ("deep/er/vld.png", "vld.svg"):
        done = run("explain", VLD, "--target-p99", "5s", "--plot", tmp_path / name)
        assert done.exit_code == 0
    assert (tmp_path / "deep/er/vld.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (tmp_path / "vld.svg").read_text(encoding="utf-8")


def test_many_operators_are_drawn_too(tmp_path):
    many = sj.Topology(
        name="many",
        arrivals=(sj.Arrival(name="in", per_s=1, into="o0"),),
        operators=tuple(
            sj.Operator(name=f"o{i}", service_s=0.5, emits={f"o{i + 1}": 1} if i < 79 else {})
            for i in range(80)
        ),
    )
    document = {
        "format": 1,
        "name": many.name,
        "arrivals": {"in": {"per_s": 1, "into": "o0"}},
        "operators": {
            o.name: {"service_s": 0.5, "emits": dict(o.emits)} for o in many.operators
        },
    }
    (tmp_path / "many.json").write_text(json.dumps(document), encoding="utf-8")
    done = run(
        "explain", tmp_path / "many.json", "--processors", 100, "--plot", tmp_path / "m.png"
    )
    assert done.exit_code == 0, done.output


def test_a_plot_that_cannot_be_written_says_so(tmp_path):
    done = run("explain", VLD, "--processors", 22, "--plot", tmp_path / "vld.gibberish")
    assert done.exit_code == 2
    assert "cannot be written" in done.stderr


def test_without_matplotlib_a_plot_says_what_to_install():
    """It is an optional dependency, so the commands must do without it."""
    program = (
        "import sys; sys.modules['matplotlib.figure'] = None\n"
        "from sojourn.cli import app\n"
        f"app(['explain', {VLD!r}, '--processors', '22', '--plot', 'x.png'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == 2
    assert "install sojourn[plot]" in done.stderr


def calibrated(tmp_path, *form, rows="1.0,1.2,3\n2.0,2.4,3\n3.0,3.6,3\n"):
    (tmp_path / "pairs.csv").write_text("estimate_s,measured_s,hops\n" + rows, encoding="utf-8")
    done = run("calibrate", tmp_path / "pairs.csv", *form)
    (tmp_path / "calibration.json").write_text(done.stdout, encoding="utf-8")
    return done


def test_a_calibration_is_fitted_kept_and_applied(tmp_path):
    assert calibrated(tmp_path).exit_code == 0
    option = ("--calibration", tmp_path / "calibration.json")
    raw = run_json("predict", VLD, "--allocation", BEST)
    corrected = run_json("predict", VLD, "--allocation", BEST, *option)
    assert corrected["mean_s"] == pytest.approx(1.2 * raw["mean_s"])
    assert corrected["calibration"]["extrapolated"] is False
    planned = run_json("plan", VLD, "--target-mean", "1.44s", *option)
    assert planned["mean_s"] <= 1.44
    assert planned["allocation"] == run_json("plan", VLD, "--target-mean", "1.2s")["allocation"]
    assert planned["target"]["seconds"] == 1.44
    percentile = run_json("plan", VLD, "--target-p95", "3.6s", *option)
    assert percentile["percentiles_s"]["p95"] <= 3.6
    assert "calibrated" in run("predict", VLD, "--allocation", BEST, *option).stdout
    kept = run_json("plan", VLD, "--processors", 22, *option)
    assert kept["processors"] == 22


def test_a_polynomial_says_nothing_of_percentiles(tmp_path):
    rows = "1.0,1.4,3\n2.0,2.6,3\n3.0,3.8,3\n"
    assert calibrated(tmp_path, "--form", "polynomial", "--degree", 1, rows=rows).exit_code == 0
    option = ("--calibration", tmp_path / "calibration.json")
    done = run("plan", VLD, "--target-p95", "3s", *option)
    assert done.exit_code == 2
    assert "does not apply to p95" in done.stderr
    assert run("plan", VLD, "--target-mean", "1.6s", *option).exit_code == 0


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("1.0,fast,3\n", "pairs.csv:2: measured_s is 'fast', not a number"),
        ("1.0\n", "measured_s is None, not a number"),
        ("", "there are no pairs"),
        ("1.0,-2,3\n", "a number that is not positive"),
    ],
)
def test_pairs_that_make_no_sense_are_refused(tmp_path, rows, said):
    done = calibrated(tmp_path, rows=rows)
    assert done.exit_code == 2
    assert said in done.stderr


def test_pairs_without_hops_count_one(tmp_path):
    (tmp_path / "pairs.csv").write_text("estimate_s,measured_s\n1.0,1.1\n", encoding="utf-8")
    assert run("calibrate", tmp_path / "pairs.csv", "--form", "per_hop").exit_code == 0


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"coefficients": 3}', "\xff", "[" * 100_000]
)
def test_a_file_that_is_no_calibration_is_refused(tmp_path, content):
    (tmp_path / "bad.json").write_bytes(content.encode("latin-1"))
    done = run("predict", VLD, "--allocation", BEST, "--calibration", tmp_path / "bad.json")
    assert done.exit_code == 2
    assert "bad.json: is not output of `sojourn calibrate`" in done.stderr


@pytest.mark.parametrize("verb", ["calibrate", "predict"])
def test_missing_files_are_named(tmp_path, verb):
    missing = tmp_path / "missing"
    arguments = (
        ("calibrate", missing)
        if verb == "calibrate"
        else ("predict", VLD, "--allocation", BEST, "--calibration", missing)
    )
    done = run(*arguments)
    assert done.exit_code == 2
    assert "missing: cannot be read" in done.stderr


def test_pairs_that_are_no_text_are_refused(tmp_path):
    (tmp_path / "pairs.csv").write_bytes(b"\xff\xfe\x00")
    done = run("calibrate", tmp_path / "pairs.csv")
    assert done.exit_code == 2
    assert "is not CSV" in done.stderr


def test_help_and_version_teach():
    assert "sojourn plan examples/vld.yaml --processors 22" in run("plan", "--help").stdout
    assert run("--version").stdout.strip() == "0.1.0"


def test_the_module_runs_as_a_command():
    done = subprocess.run(
        [sys.executable, "-m", "sojourn", "plan", VLD, "--processors", "22", "--json"],
        capture_output=True,
        check=True,
    )
    assert json.loads(done.stdout)["processors"] == 22

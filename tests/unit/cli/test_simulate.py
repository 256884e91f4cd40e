"""`sojourn simulate` as a user runs it: what it prints, and how it ends."""

import json
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest
from typer.testing import CliRunner

from sojourn.cli import app
from sojourn.simulate.workload import GapShape

VLD = str(Path(__file__).parents[3] / "examples" / "vld.yaml")
BEST = ("--allocation", "extract=10,match=11,aggregate=1")


def run(*arguments, text=None):
    return CliRunner().invoke(
        app, ["simulate", *map(str, arguments)], input=text, env={"COLUMNS": "120"}
    )


def run_json(*arguments):
    done = run(*arguments, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_json_has_the_fields_of_a_prediction_and_how_they_were_measured():
    predicted = json.loads(CliRunner().invoke(app, ["predict", VLD, *BEST, "--json"]).stdout)
    printed = run_json(VLD, *BEST, "--records", 30_000)
    assert list(printed) == [
        *predicted,
        "seed", "roots", "visits", "warm_up_s", "simulated_s", "wall_s", "half_widths_s",
    ]  # fmt: skip
    assert printed["model"] == "simulation"
    assert list(printed["operators"]["match"]) == list(predicted["operators"]["match"])
    assert list(printed["percentiles_s"]) == list(predicted["percentiles_s"])
    assert list(printed["half_widths_s"]) == [
        "mean_s", "completion_mean_s", "std_s", "p50", "p90", "p95", "p99",
    ]  # fmt: skip
    assert (printed["seed"], printed["roots"]) == (1, 30_000)
    assert printed["processors"] == 22
    for name in ("mean_s", "completion_mean_s", "std_s"):
        near = 2 * printed["half_widths_s"][name] + 0.01
        assert printed[name] == pytest.approx(predicted[name], abs=near)


def test_the_seed_decides_and_only_the_real_time_differs():
    once, again, other = (
        run_json(VLD, *BEST, "--records", 2000, "--seed", seed) for seed in (5, 5, 6)
    )
    assert once.pop("wall_s") > 0
    assert again.pop("wall_s") > 0
    assert once == again
    assert once["mean_s"] != other["mean_s"]


def test_a_run_ends_by_time_or_by_records():
    in_time = run_json(VLD, *BEST, "--duration", "10m")
    assert (in_time["simulated_s"], in_time["warm_up_s"]) == (600.0, 60.0)
    assert in_time["roots"] == pytest.approx(13 * 600, rel=0.1)
    assert run_json(VLD, *BEST)["roots"] == 100_000


def test_too_short_a_run_has_no_half_widths():
    assert run_json(VLD, *BEST, "--records", 12)["half_widths_s"]["p99"] is None
    shown = run(VLD, *BEST, "--records", 12)
    assert shown.exit_code == 0
    assert "±" not in shown.stdout


def test_the_table_stands_beside_the_prediction():
    shown = run(VLD, *BEST, "--records", 20_000, "--seed", 3).stdout
    for words in (
        "vld · simulated, seed 3", "extract", "gigk predicts", "error", "±", "completion",
        "p99", "20000 roots", "s simulated", "s real; measured after",
    ):  # fmt: skip
        assert words in shown


def test_what_cannot_keep_up_is_simulated_all_the_same():
    overloaded = ("--allocation", "extract=5,match=11,aggregate=1", "--records", 5000)
    done = run(VLD, *overloaded)
    assert done.exit_code == 0
    assert "cannot keep up" in done.stdout
    busy = run_json(VLD, *overloaded)["operators"]["extract"]["utilisation"]
    assert busy == pytest.approx(1.0, rel=0.05)


def test_times_may_have_another_shape_and_records_another_way():
    varied = run_json(VLD, *BEST, "--records", 30_000)
    tame = ("--records", 30_000, "--service", "constant", "--gaps", "uniform")
    steady = run_json(VLD, *BEST, *tame)
    assert steady["std_s"] < 0.1 * varied["std_s"]
    by_turns = run_json(VLD, *BEST, "--records", 30_000, "--dispatch", "round_robin")
    assert by_turns["mean_s"] > 1.1 * varied["mean_s"]


def test_rates_are_shared_out_over_the_arrivals(tmp_path):
    two = {
        "format": 1,
        "name": "two",
        "arrivals": {"a": {"per_s": 30, "into": "x"}, "b": {"per_s": 10, "into": "y"}},
        "operators": {"x": {"service_s": 0.001}, "y": {"service_s": 0.001}},
    }
    (tmp_path / "two.yaml").write_text(json.dumps(two), encoding="utf-8")
    (tmp_path / "rates.csv").write_text("at,rate\n0,80\n", encoding="utf-8")
    rates = ("--rates", tmp_path / "rates.csv")
    printed = run_json(tmp_path / "two.yaml", "--allocation", "x=1,y=1", *rates)
    assert printed["operators"]["x"]["arrivals_per_s"] == pytest.approx(60, rel=0.05)
    assert printed["operators"]["y"]["arrivals_per_s"] == pytest.approx(20, rel=0.05)


def test_a_topology_may_come_from_standard_input():
    text = Path(VLD).read_text(encoding="utf-8")
    assert run("-", *BEST, "--records", 500, text=text).exit_code == 0


@pytest.mark.parametrize("allocation", [BEST[1], "extract=5,match=11,aggregate=1"])
def test_a_plot_is_a_picture(tmp_path, allocation):
    path = tmp_path / "deep" / "vld.png"
    done = run(VLD, "--allocation", allocation, "--records", 2000, "--plot", path)
    assert done.exit_code == 0
    assert path.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            (*BEST, "--duration", "1m", "--records", 9),
            "--duration and --records exclude each other",
        ),
        ((*BEST, "--duration", "60"), "'60' has no unit"),
        (
            (*BEST, "--duration", "0s"),
            "no root that arrived after the warm-up of 0 s completed",
        ),
        ((*BEST, "--records", 0), "no root that arrived after the warm-up of 0 s completed"),
        (
            (*BEST, "--service", "weibull"),
            "'weibull' is not a shape of service times; write on",
        ),
        ((*BEST, "--service", "measured"), "of 0 measured service times"),
        ((*BEST, "--gaps", "weekly"), "'weekly' is not a shape of gaps; write one of renewal"),
        ((*BEST, "--dispatch", "hashed"), "'hashed' is not a dispatch; write one of shared, "),
        ((*BEST, "--rates", "nowhere.csv"), "nowhere.csv: cannot be read"),
        (("--allocation", "extract=10"), "no processors for match, aggregate"),
        (("--allocation", BEST[1] + ",x=1"), "there is no operator 'x'"),
        (("--allocation", "extract=many"), "'extract=many' is not OPERATOR=PROCESSORS"),
        (("--allocation", "extract=999999999,match=1,aggregate=1"), "too many to simulate"),
    ],
)
def test_bad_input_is_one_line_and_status_2(arguments, said):
    done = run(VLD, *arguments)
    assert done.exit_code == 2
    assert said in done.stderr
    assert done.stderr.strip().count("\n") == 0
    assert not done.stdout


def test_a_seed_is_0_or_more():
    assert run(VLD, *BEST, "--seed", -1).exit_code == 2


def test_help_teaches():
    said = run("--help").stdout
    assert "sojourn simulate examples/vld.yaml --allocation" in said
    assert all(shape in said for shape in get_args(GapShape))


def test_without_numba_it_says_what_to_install(monkeypatch):
    """It is an optional dependency, so the other commands must do without it."""
    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, "sojourn.simulate.run", None)
        assert "install sojourn[simulate]" in run(VLD, *BEST).stderr
    without = (
        "import sys; sys.modules['numba'] = None\n"
        "from sojourn.cli import app\n"
        f"app([{{}}, {VLD!r}, '--allocation', {BEST[1]!r}])"
    )
    for command, status in (("simulate", 2), ("predict", 0)):
        done = subprocess.run(
            [sys.executable, "-c", without.format(repr(command))],
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        assert done.returncode == status, done.stderr
        assert ("install sojourn[simulate]" in done.stderr) is (status == 2)

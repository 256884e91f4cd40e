"""`sojourn compare` as a user runs it: what it prints, and how it ends."""

import json
import re
import subprocess
import sys
from dataclasses import replace
from math import nan
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet
from typer.testing import CliRunner

import sojourn as sj
from sojourn.act.policy import names
from sojourn.act.policy.static import Static
from sojourn.act.policy.threshold import Threshold
from sojourn.cli import app
from sojourn.decide.objective import Objective
from sojourn.decide.plan import Plan
from sojourn.errors import BadFile
from sojourn.report.comparison import Outcome, dominating, outcomes
from sojourn.report.plot.comparison import draw_comparison
from sojourn.report.terminal.runs import trade_off
from sojourn.simulate.rehearsal import Score, Stage
from sojourn.simulate.workload import Rates

EXAMPLES = Path(__file__).parents[3] / "examples"
VLD = EXAMPLES / "vld.yaml"
TARGET = sj.Target("p95", 3.0)
FEW = ("--target-p95", "3s", "--policies", "static,threshold", "--seeds", 2)


def run(*arguments):
    return CliRunner().invoke(app, ["compare", *map(str, arguments)])


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


@pytest.fixture(scope="module")
def stage():
    topology = sj.read_topology(VLD)
    rates = Rates.steps((0, 6), (120, 12), (300, 12))
    return Stage(topology=topology, rates=rates, objective=Objective(target=TARGET))


@pytest.fixture(scope="module")
def made(stage):
    return outcomes(stage, {"threshold": Threshold(), "static": Static()}, 2)


def outcome(name, *, kept=1.0, hours=1.0):
    score = Score(seed=1, kept=kept, slices=10, processor_hours=hours, changes=0, worst_s=nan)
    return Outcome(
        policy=name,
        start=Plan.here({"a": 1}),
        starts_for=1.0,
        scores=[score],
        slices_s=[np.array([nan])],
        processors=[(0.0, 1)],
    )


def test_a_table_has_a_line_for_each_policy(trace):
    done = run(VLD, "--trace", trace, *FEW)
    assert done.exit_code == 0
    head, names, rule, *lines = done.stdout.splitlines()
    assert head == "vld · p95 ≤ 3 s in 99% of 60 s slices · 0:05:00 of load, 2 seeds"
    assert re.split(r" {2,}", names) == [
        "policy", "starts with", "kept", "processor-hours", "changes", "worst p95",
    ]  # fmt: skip
    assert set(rule) == {"─"}
    static, threshold = (re.split(r" {2,}", line) for line in lines[:2])
    # seventeen processors for five minutes, whatever comes
    assert static[:2] == ["static", "8:8:1 for 12 per s"]
    assert static[3:5] == ["1.42 ± 0.00", "0"]
    assert threshold[:2] == ["threshold", "5:5:1 for 6 per s"]
    assert re.fullmatch(r"\d+\.\d% ± \d+\.\d%", threshold[2])
    assert "static with what the highest rate needs" in done.stdout
    assert sum(line.startswith("front  ") for line in lines) == 1


def test_all_policies_are_compared_and_drs_is_the_first(trace):
    policies = run_json(
        VLD, "--trace", trace, "--faster", 3, "--target-p95", "3s", "--seeds", 1
    )["policies"]
    assert list(policies) == ["drs", *(name for name in names() if name != "drs")]
    assert policies["drs"]["kept"]["half_width"] is None  # of one seed nobody knows


def test_one_seed_has_no_half_width(trace):
    done = run(VLD, "--trace", trace, "--target-p95", "3s", "--policies", "ds2", "--seeds", 1)
    assert "±" not in done.stdout
    assert "1 seed\n" in done.stdout
    assert "static" not in done.stdout


def test_json_has_each_seed_and_all_of_them(trace):
    printed = run_json(VLD, "--trace", trace, *FEW, "--pause", "2s", "--processors", 30)
    assert list(printed) == [
        "name", "target", "processors", "slice_s", "kept", "lasts_s", "every_s", "pause_s",
        "note", "front", "policies",
    ]  # fmt: skip
    assert printed["target"] == {"statistic": "p95", "seconds": 3.0}
    assert (printed["lasts_s"], printed["pause_s"], printed["processors"]) == (300, 2, 30)
    assert printed["note"] == ""
    for policy in printed["policies"].values():
        assert list(policy) == [
            "allocation", "starts_for_per_s", "kept", "processor_hours", "changes",
            "worst_s", "unfinished", "dominated_by", "seeds",
        ]  # fmt: skip
        assert [each["seed"] for each in policy["seeds"]] == [1, 2]
        assert all(len(each["slices_s"]) == 5 for each in policy["seeds"])
        for field in ("kept", "processor_hours", "changes", "worst_s"):
            mean = np.mean([each[field] for each in policy["seeds"]])
            assert policy[field]["mean"] == pytest.approx(mean)
    dominated = {n for n, p in printed["policies"].items() if p["dominated_by"]}
    assert dominated | set(printed["front"]) == {"static", "threshold"}
    assert printed["policies"]["static"]["starts_for_per_s"] == 12


def test_the_same_command_gives_the_same_numbers(trace):
    once, again = (run_json(VLD, "--trace", trace, *FEW) for _ in range(2))
    assert once == again


def test_rates_may_be_higher_and_pass_faster(trace):
    printed = run_json(VLD, "--trace", trace, "--times", 2, "--faster", 1.5, *FEW, "--seeds", 1)
    assert printed["lasts_s"] == 200
    assert printed["policies"]["static"]["starts_for_per_s"] == 24


def test_what_nothing_can_reach_is_said(trace):
    done = run(VLD, "--trace", trace, "--target-p95", "1s", "--policies", "static")
    assert done.exit_code == 0
    assert "note        at 12 per s: no number of processors reaches p95 ≤ 1 s" in done.stdout


def test_what_is_never_done_is_counted(trace):
    few = ("--processors", 3, "--policies", "static", "--seeds", 1, "--target-p95", "3s")
    done = run(VLD, "--trace", trace, *few)
    assert "unfinished" in done.stdout
    assert "0.0%" in done.stdout


def test_a_load_of_nothing_is_met_by_anything(tmp_path):
    (tmp_path / "none.csv").write_text("0,0\n60,0\n", encoding="utf-8")
    printed = run_json(VLD, "--trace", tmp_path / "none.csv", *FEW)
    assert printed["policies"]["static"]["worst_s"]["mean"] is None
    assert printed["front"] == ["static", "threshold"]
    plot = tmp_path / "none.png"
    assert run(VLD, "--trace", tmp_path / "none.csv", *FEW, "--plot", plot).exit_code == 0
    assert plot.exists()


def test_times_may_have_another_shape(trace):
    tame = run_json(VLD, "--trace", trace, *FEW, "--service", "constant", "--gaps", "uniform")
    wild = run_json(VLD, "--trace", trace, *FEW, "--gaps", "batches:20")
    worst = [each["policies"]["static"]["worst_s"]["mean"] for each in (tame, wild)]
    assert worst[0] < 2 < worst[1]


def test_every_root_of_every_run_is_exported(trace, tmp_path):
    printed = run_json(VLD, "--trace", trace, *FEW, "--export", tmp_path / "roots")
    files = sorted(path.name for path in (tmp_path / "roots").iterdir())
    assert files == [f"{n}-{s}.parquet" for n in ("static", "threshold") for s in (1, 2)]
    roots = parquet.read_table(tmp_path / "roots" / "static-2.parquet")
    assert roots.column_names == ["birth_s", "completion_s", "sum_s"]
    assert roots.num_rows == pytest.approx(6 * 120 + 12 * 180, rel=0.1)
    born_s, took_s = roots["birth_s"].to_numpy(), roots["completion_s"].to_numpy()
    assert born_s.max() <= 300
    # the score can be worked out again
    last = np.sort(took_s[born_s >= 240])
    p95 = last[int(np.ceil(0.95 * len(last))) - 1]
    assert printed["policies"]["static"]["seeds"][1]["slices_s"][-1] == pytest.approx(p95)


# -- the trade-off -----------------------------------------------------------------------------


def test_less_of_both_or_of_one_dominates():
    cheap, good = outcome("cheap", kept=0.5, hours=1), outcome("good", hours=2)
    dear, worse = outcome("dear", hours=3), outcome("worse", kept=0.4, hours=2.5)
    every = [cheap, good, dear, worse]
    assert trade_off(every) == "cheap, good; dominated: dear (by good), worse (by cheap, good)"
    assert trade_off([cheap, good]) == "cheap, good; dominated: none"


def test_those_that_are_alike_do_not_dominate_each_other():
    assert trade_off([outcome("one"), outcome("other")]) == "one, other; dominated: none"


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=8),
)
def test_what_is_dominated_is_dominated_by_one_on_the_front(points):
    every = [outcome(f"p{n}", kept=x, hours=y) for n, (x, y) in enumerate(points)]
    by = {each.policy: dominating(each, every) for each in every}
    front = {name for name, others in by.items() if not others}
    assert front
    assert all(front & set(others) for others in by.values() if others)


# -- pictures ----------------------------------------------------------------------------------


def test_a_plot_is_a_picture(trace, tmp_path):
    path = tmp_path / "deep" / "compared.png"
    assert run(VLD, "--trace", trace, *FEW, "--plot", path).exit_code == 0
    assert path.read_bytes().startswith(b"\x89PNG")


def picture(tmp_path, stage, made):
    """Return the text in the picture."""
    draw_comparison(stage, made, tmp_path / "c.svg")
    return (tmp_path / "c.svg").read_text(encoding="utf-8")


def test_a_picture_says_what_it_shows(tmp_path, stage, made):
    text = picture(tmp_path, stage, made)
    for words in (
        "vld: p95 ≤ 3 s", "processor-hours", "slices in which the target is missed, %",
        "over time, the first seed", "roots per second", "p95, seconds", "processors",
        "minutes", "p95 ≤ 3 s",
    ):  # fmt: skip
        assert f"<!-- {words} -->" in text
    # beside its point, and in the legend
    assert text.count("<!-- threshold -->") == text.count("<!-- static -->") == 2


def test_what_is_dominated_is_said_to_be_hollow(tmp_path, stage, made):
    scores = [replace(score, kept=0.0, processor_hours=9.0) for score in made[0].scores]
    dear = replace(made[0], policy="dear", scores=scores)
    assert "2 seeds; hollow: dominated" in picture(tmp_path, stage, [*made, dear])
    assert "hollow" not in picture(tmp_path, stage, [made[0]])


def test_latencies_far_apart_are_drawn_by_powers_of_ten(tmp_path, stage, made):
    far = replace(made[0], slices_s=[np.array([1.0, 2.0, 900.0, 3.0, nan])])
    assert "10^{2}" in picture(tmp_path, stage, [far])
    assert "10^{2}" not in picture(tmp_path, stage, made)


def test_a_picture_that_cannot_be_written_is_named(tmp_path, stage, made):
    with pytest.raises(BadFile, match="cannot be written"):
        draw_comparison(stage, made, tmp_path / "c.nothing")


# -- what is refused ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "a target is required; write --target-p95 3s"),
        (("--target-p95", "3s", "--target-mean", "1s"), "--target-mean and --target-p95 are"),
        (
            (*FEW, "--policies", "drs,oracle"),
            "unknown policy 'oracle'; write one of ",
        ),
        ((*FEW, "--policies", ""), "unknown policy ''"),
        ((*FEW, "--every", "10"), "'10' has no unit"),
        ((*FEW, "--every", "0s"), "every_s is 0.0; write more than 0"),
        ((*FEW, "--every", "10m"), "the load lasts 300 s, but the first look is after 600 s"),
        ((*FEW, "--slice", "soon"), "'soon' is not a time"),
        ((*FEW, "--slice", "1us"), "slices of 1e-06 s need a look every 5e-08 s"),
        ((*FEW, "--slice", "0s"), "0.0 s is not a time slice; write more than 0"),
        ((*FEW, "--kept", "0.99"), "--kept '0.99' is not a percentage; write 99%"),
        ((*FEW, "--kept", "100%"), "in 100% of all time slices; write more than 0% and"),
        ((*FEW, "--pause", "-1s"), "'-1s' is not a time"),
        ((*FEW, "--pause", "9" * 400 + "s"), "pause_s is inf; write 0 or more"),
        (
            (*FEW, "--times", "0"),
            "the factor on rates is 0.0, that on time 1.0; write more than 0",
        ),
        (
            (*FEW, "--faster", "nan"),
            "the factor on rates is 1.0, that on time nan; write more than 0",
        ),
        ((*FEW, "--service", "weibull"), "'weibull' is not a shape of service times"),
        ((*FEW, "--gaps", "weekly"), "'weekly' is not a shape of gaps"),
        ((*FEW, "--gaps", "batches:many"), "'batches:many' is not a pattern of arrivals"),
        ((*FEW, "--gaps", "on_off:2s"), "write on_off:2s:5s, batches:10, or the name alone"),
        ((*FEW, "--gaps", "uniform:3"), "'uniform:3' is not a pattern of arrivals"),
        ((*FEW, "--gaps", "batches:0"), "the size of batches is 0; write 1 or more"),
        ((*FEW, "--export", VLD), "static-1.parquet: cannot be written"),
    ],
)
def test_bad_input_is_one_line_and_status_2(trace, arguments, said):
    done = run(VLD, "--trace", trace, *arguments)
    assert done.exit_code == 2
    assert said in done.stderr
    assert done.stderr.strip().count("\n") == 0
    assert not done.stdout


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\x89PNG\xff\x00", "is not CSV"),
        (b"once upon\na time", "in the header 'once upon' no column is a time"),
        (b"timestamp,rate\n", "has no rows"),
        (b"0,6\n", "the load lasts 0 s, but the first look is after 3 s; give a longer load"),
        (b"0,6\n2,6\n", "the load lasts 2 s, but the first look is after 3 s"),
        (b"0,6\n60,-1\n", "-1.0 per second; write 0 or more"),
        (b"60,6\n0,6\n", "the times of a rate are not in order; sort them"),
    ],
)
def test_a_trace_that_is_none_is_refused(tmp_path, content, said):
    (tmp_path / "rates.csv").write_bytes(content)
    done = run(VLD, "--trace", tmp_path / "rates.csv", *FEW)
    assert done.exit_code == 2
    assert said in done.stderr


def test_a_trace_is_required_and_has_to_exist(tmp_path):
    assert run(VLD, *FEW).exit_code == 2
    done = run(VLD, "--trace", tmp_path / "none.csv", *FEW)
    assert "none.csv: cannot be read: No such file or directory" in done.stderr


def test_help_teaches():
    assert "sojourn compare examples/vld.yaml --trace" in run("--help").stdout


def test_without_numba_it_says_what_to_install(trace, monkeypatch):
    """It is an optional dependency, so the command itself must do without it."""
    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, "sojourn.simulate.rehearsal", None)
        assert "install sojourn[simulate]" in run(VLD, "--trace", trace, *FEW).stderr
    program = (
        "import sys; sys.modules['numba'] = None\n"
        "from sojourn.cli import app\n"
        f"app(['compare', {str(VLD)!r}, '--trace', {str(trace)!r}, '--target-p95', '3s'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == 2
    assert "install sojourn[simulate]" in done.stderr


def test_tuned_policies_keep_the_objective_with_the_fewest_processors(trace):
    told = run_json(
        VLD, "--trace", trace, "--target-p95", "3s", "--kept", "80%", "--seeds", 1, "--tuned",
        "--policies", "drs,static,threshold",
    )["policies"]  # fmt: skip
    tuned = [name.partition("=")[0] for name in told]
    assert tuned == ["drs", "static", "threshold:utilisation", "schedule:margin"]
    for name, each in told.items():
        assert each["kept"]["mean"] >= 0.8, name
    # fewer than for the highest rate are enough for 80 % of the time
    least = run_json(VLD, "--trace", trace, *FEW)["policies"]["static"]
    assert sum(told["static"]["allocation"].values()) <= sum(least["allocation"].values())


def test_what_no_setting_keeps_is_shown_with_the_most_processors(trace):
    told = run_json(
        VLD, "--trace", trace, "--target-p95", "2s", "--seeds", 1, "--tuned",
        "--policies", "threshold",
    )["policies"]  # fmt: skip
    assert next(iter(told)) == "threshold:utilisation=0.2"
    assert told["threshold:utilisation=0.2"]["kept"]["mean"] == 0


def test_tuning_exports_no_roots(trace, tmp_path):
    done = run(VLD, "--trace", trace, "--target-p95", "3s", "--tuned", "--export", tmp_path)
    assert done.exit_code == 2
    assert "leave out --tuned" in done.stderr

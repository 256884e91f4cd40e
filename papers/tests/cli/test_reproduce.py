"""`sojourn reproduce` as a user runs it: what it prints and writes, and how it ends."""

import builtins
import csv
import json
from dataclasses import replace
from importlib import import_module

import pytest
from typer.testing import CliRunner

from sojourn.cli import app
from sojourn.report.panel import Mark, Panel, Series
from sojourn.report.plot.panels import draw_panels
from sojourn_papers.experiments import names, runner
from sojourn_papers.experiments.bench import Bench
from sojourn_papers.experiments.on_simulator import simulated
from sojourn_papers.experiments.papers import drs15_fig8
from sojourn_papers.experiments.record import Findings, Table, Verdict
from sojourn_papers.experiments.span import reallocating

QUICK = ("drs15-fig8", "drs15-fig10", "drs17-fig10")


def run(*arguments):
    return CliRunner().invoke(
        app, ["reproduce", *map(str, arguments)], env={"COLUMNS": "160", "NO_COLOR": "1"}
    )


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    out = tmp_path_factory.mktemp("reproduced")
    result = run(*QUICK, "--out", out, "--json")
    assert result.exit_code == 0, result.output
    return out, json.loads(result.stdout)


def test_the_list_has_every_claim():
    listed = json.loads(run("--list", "--json").stdout)["experiments"]
    assert tuple(entry["name"] for entry in listed) == names()
    on_spark = json.loads(run("--list", "--json", "--engine", "spark").stdout)["experiments"]
    assert [entry["name"] for entry in on_spark] == list(reallocating())
    printed = run("--list").stdout
    assert all(name in printed for name in names())


def test_a_csv_a_picture_and_a_page_are_written(done):
    out, report = done
    for name in QUICK:
        lines = (out / f"{name}.csv").read_text(encoding="utf-8").splitlines()
        columns, *rows = csv.reader(lines)
        assert len(rows) > 3
        assert {len(row) for row in rows} == {len(columns)}
        assert (out / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    page = (out / "report.md").read_text(encoding="utf-8")
    for entry in report["experiments"]:
        assert f"## {entry['name']}: holds" in page
        assert entry["claim"] in page
        assert all(verdict["numbers"] in page for verdict in entry["verdicts"])
    assert "Only meaningful on a real network" in page
    assert "How parameters were chosen" in page
    assert "(drs15-fig8.png)" in page


def test_json_says_what_holds_and_with_which_numbers(done):
    _, report = done
    assert (report["seed"], report["holds"]) == (1, True)
    assert [entry["name"] for entry in report["experiments"]] == list(QUICK)
    assert all(v["numbers"] for e in report["experiments"] for v in e["verdicts"])


def test_a_table_is_printed_and_the_seed_decides(tmp_path):
    first, again, other = (
        run("drs15-fig8", "--out", tmp_path, "--seed", seed).stdout for seed in (1, 1, 2)
    )
    assert "ratio of measured to estimated mean falls" in first
    assert "1 of 1 hold" in first
    assert first == again
    assert first != other


def test_points_marks_and_both_scales_are_drawn(tmp_path):
    series = Series(label="it", x=[1.0, 2.0], y=[1.0, 9.0], error=[0.1, 0.2])
    lines = Panel(kind="lines", title="a", x_label="", y_label="", series=(series,), log_y=True)
    points = replace(lines, kind="points", diagonal=True, log_x=True, marks=(Mark(1.5),))
    for panels in ((lines,), (lines, points)):
        path = tmp_path / f"{len(panels)}.png"
        draw_panels(panels, path)
        assert path.read_bytes().startswith(b"\x89PNG")


def test_a_claim_that_does_not_hold_ends_with_status_1(tmp_path, monkeypatch):
    class Wrong:
        about = drs15_fig8.EXPERIMENT.about

        def run(self, _bench):
            verdict = Verdict(point="up is down", holds=False, numbers="1 > 2")
            return Findings(table=Table(("a",), [(1,)]), panels=(), verdicts=(verdict,))

    monkeypatch.setattr(drs15_fig8, "EXPERIMENT", Wrong())
    command = import_module("sojourn_papers.cli.reproduce")
    monkeypatch.setattr(command, "draw_panels", lambda _panels, _path: None)
    result = run("drs15-fig8", "--out", tmp_path)
    assert result.exit_code == 1
    assert "does not hold" in result.stdout
    assert "0 of 1 hold" in result.stdout
    assert "**does not hold** | 1 > 2" in (tmp_path / "report.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("drs15-fig5",), "unknown experiment 'drs15-fig5'; write one of drs15-fig6"),
        ((), "name some, or write --all or --list"),
        (("drs15-fig9", "--faster", "6"), "need --engine spark"),
        (("drs15-fig9", "--within", "6m"), "need --engine spark"),
        (("drs15-fig5", "--engine", "spark"), "unknown experiment 'drs15-fig5'"),
        (
            ("drs15-fig9", "drs15-fig6", "--engine", "spark"),
            "drs15-fig6 is not about re-allocation and runs on the simulator only; on",
        ),
        (("--all", "--engine", "spark", "--faster", "0"), "--faster 0 is not positive"),
        (("--all", "--engine", "spark", "--within", "9s"), "write --within 4m or more"),
    ],
)
def test_what_cannot_be_run_is_refused(arguments, said, tmp_path):
    result = run(*arguments, "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert said in result.output
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    result = run("drs15-fig8", "--out", tmp_path / "file")
    assert result.exit_code == 2
    assert "name a writable folder" in result.output


def test_a_file_that_cannot_be_written_is_refused(tmp_path):
    for name in ("drs15-fig8.csv", "report.md"):
        folder = tmp_path / name.replace(".", "-")
        (folder / name).mkdir(parents=True)
        result = run("drs15-fig8", "--out", folder)
        assert result.exit_code == 2
        assert f"{name}: cannot be written" in result.output


def test_without_matplotlib_there_are_no_pictures_but_verdicts(tmp_path, monkeypatch):
    real = builtins.__import__

    def without(name, *rest, **named):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    result = run("drs15-fig8", "--out", tmp_path)
    assert result.exit_code == 0, result.output
    assert "no plots: plots need matplotlib" in result.stderr
    assert not list(tmp_path.glob("*.png"))
    assert "![" not in (tmp_path / "report.md").read_text(encoding="utf-8")


def test_without_numba_it_says_what_to_install(tmp_path, monkeypatch):
    real = builtins.__import__

    def without(name, *rest, **named):
        if name == "sojourn_papers.experiments.on_simulator":
            raise ImportError(name)
        return real(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    result = run("drs15-fig8", "--out", tmp_path)
    assert result.exit_code == 2
    assert "sojourn[simulate]" in result.output


@pytest.mark.slow
def test_every_claim_holds(tmp_path):
    bench = Bench(engine=simulated, seed=1)
    # what is timed has no seed, and a busy machine is no wrong claim
    timed = {"drs15-table2", "drs17-table2"}
    for one in runner.reproduce([n for n in names() if n not in timed], bench, tmp_path):
        assert one.outcome.holds, (one.name, one.outcome.verdicts)

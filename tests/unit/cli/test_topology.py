"""Commands that take an application as well as a file, and `sojourn topology`."""

import json
import os
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner

import sojourn as sj
from sojourn.act.policy import policy
from sojourn.cli import app
from sojourn.decide.plan import Plan
from sojourn.history import HistoryFile, Run, read
from sojourn.loop import Loop
from sojourn.service.folders import state_folder
from sojourn.simulate.simulator import Simulator
from sojourn.simulate.workload import Rates, Workload
from sojourn.topology.file import parse_topology

VLD = Path(__file__).parents[3] / "examples" / "vld.yaml"
TRACE = VLD.parent / "doubling.csv"
BOTH = "check=4,book=2"
SHOP = """
import sojourn as sj

app = sj.App("shop")
payments = app.source("payments", schema="card string")
refunds = app.source("refunds", schema="card string")


@app.operator(reads=payments, emits="card string", service_s=0.05)
def check(card):
    yield (card,)


@app.operator(reads=[check, refunds], {hint})
def book(stream, record):
    pass
"""


@pytest.fixture(autouse=True)
def own(places):
    return places


@pytest.fixture
def shop(tmp_path, monkeypatch):
    """Write the application `shop`, whose operators say how long they take."""
    return _written(tmp_path, monkeypatch, "service_s=0.01")


def _written(tmp_path, monkeypatch, hint):
    module = f"shop_{abs(hash(tmp_path))}"
    (tmp_path / f"{module}.py").write_text(SHOP.format(hint=hint))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path[:])
    return f"{module}:app"


def run(*arguments, text=None):
    return CliRunner().invoke(app, list(map(str, arguments)), input=text)


def said(*arguments, text=None):
    done = run(*arguments, text=text)
    assert done.exit_code == 0, done.output
    return done.stdout


def refused(*arguments):
    done = run(*arguments)
    assert done.exit_code == 2, done.output
    return done.stderr


RATES = ("--rate", "payments=40", "--rate", "refunds=2")


@pytest.mark.parametrize(
    "arguments",
    [
        ("plan", "--target-p95", "200ms", *RATES),
        ("predict", "--allocation", BOTH, *RATES),
        ("explain", "--allocation", BOTH, *RATES),
        ("simulate", "--allocation", BOTH, "--records", 500, *RATES),
        ("rehearse", "--trace", TRACE, "--faster", 100, "--target-p95", "1s", *RATES),
        ("compare", "--trace", TRACE, "--faster", 100, "--target-p95", "1s", "--seeds", 1,
         "--policies", "drs", *RATES),
    ],
    ids=lambda arguments: arguments[0],
)  # fmt: skip
def test_commands_say_of_an_application_what_they_say_of_its_file(shop, tmp_path, arguments):
    command, *options = arguments
    file = tmp_path / "shop.yaml"
    said("topology", shop, *RATES, "-o", file)
    of_app = json.loads(said(command, shop, *options, "--json"))
    of_file = json.loads(said(command, file, *options, "--json"))
    of_app.pop("wall_s", None)
    of_file.pop("wall_s", None)
    if command == "explain":  # only an application has parts
        parts = [{"operators": ["check", "book"], "projections": [], "inner": ["check"],
                  "reads": ["payments", "refunds"], "writes": []}]  # fmt: skip
        assert (of_app.pop("parts"), of_file.pop("parts")) == (parts, [])
    assert of_app == of_file
    assert of_app["name"] == "shop"


def test_the_topology_of_an_application_is_written_as_it_declares_it(shop):
    written = parse_topology(said("topology", shop, *RATES))
    assert {a.name: a.per_s for a in written.arrivals} == {"payments": 40, "refunds": 2}
    assert {o.name: o.service_s for o in written.operators} == {"check": 0.05, "book": 0.01}
    assert written.operator["check"].emits == {"book": 1}


def test_a_rate_that_nobody_said_is_asked_for(shop):
    assert "the rate of refunds is unknown; add --rate refunds=40" in refused(
        "plan", shop, "--rate", "payments=4", "--processors", 9
    )
    for rates in (RATES, ()):  # also if it was meant for one that is missing
        assert "--rate order: there is no such source; there are payments, refunds" in refused(
            "plan", shop, *rates, "--rate", "order=3", "--processors", 9
        )


def test_operators_without_a_hint_are_named_with_the_ways_out(tmp_path, monkeypatch):
    shop = _written(tmp_path, monkeypatch, "max_processors=3")
    error = refused("plan", shop, *RATES, "--processors", 9)
    assert "the service time of book is unknown; give service_s= in seconds" in error
    assert f"sojourn topology {shop} --measured -o measured.yaml" in error


def test_the_only_source_of_a_rehearsed_application_needs_no_rate(tmp_path, monkeypatch):
    text = SHOP.replace('refunds = app.source("refunds", schema="card string")\n', "")
    monkeypatch.setitem(globals(), "SHOP", text.replace("[check, refunds]", "[check]"))
    shop = _written(tmp_path, monkeypatch, "service_s=0.01")
    arguments = ("--trace", TRACE, "--faster", 100, "--target-p95", "1s")
    assert "p95 ≤ 1 s in" in said("rehearse", shop, *arguments)
    assert "--rate payments=40" in refused("plan", shop, "--processors", 9)


def test_rates_of_a_file_are_replaced():
    twice = parse_topology(said("topology", VLD, "--rate", "frames=26"))
    assert twice == sj.read_topology(VLD).scaled(2)
    assert "there is no such arrival; there are frames" in refused(
        "plan", VLD, "--rate", "lines=3", "--processors", 22
    )


@pytest.mark.parametrize("wrong", ["frames", "frames=many", "=3", "frames=-1", "frames=inf"])
def test_rates_that_are_none_are_refused(wrong):
    assert "is not SOURCE=PER_S; write payments=40" in refused(
        "plan", VLD, "--rate", wrong, "--processors", 22
    )


def test_a_rate_is_given_once():
    error = refused("plan", VLD, "--rate", "frames=1", "--rate", "frames=2", "--processors", 22)
    assert "--rate frames is given twice" in error


# -- measured ----------------------------------------------------------------------------------


def played(path, topology, *, lasts_s=60.0, really=None, workload=None):
    """Let a loop run that believes *topology*, on operators that really are otherwise."""
    start = {"extract": 10, "match": 11, "aggregate": 1}
    simulator = Simulator(sample_every=1, workload=workload or Workload())
    with simulator as engine, HistoryFile(path) as history:
        engine.start(really or topology, Plan.here(start))
        target = sj.Target("p95", 3.0)
        loop = Loop(engine, topology, policy("static", target=target), every_s=10)
        history.begin(
            Run(topology=topology, plan=engine.plan, started_at=datetime.now(UTC), every_s=10,
                policy="static", target=target)
        )  # fmt: skip
        for episode in loop.run(lasts_s):
            history.append(episode)
    return path


def kept(name):
    folder = state_folder(name)
    folder.mkdir(parents=True)
    return folder / "history"


def test_what_was_measured_is_found_and_written(tmp_path):
    vld = sj.read_topology(VLD)
    path = played(kept("vld"), vld.scaled(0.1), really=vld)
    file = tmp_path / "measured.yaml"
    done = run("topology", VLD, "--measured", "-o", file)
    assert "measured in run 1 of vld, started 20" in done.stderr
    assert str(path) in done.stderr
    assert done.stderr in file.read_text().replace("# ", "")
    measured = sj.read_topology(file)
    assert measured == read(path).topology
    assert measured.arrivals_per_s == pytest.approx(13, rel=0.2), "and not 1.3, as declared"
    assert said("plan", file, "--processors", 30, "--json")
    other = said("topology", "--measured", "--history", path, "--rate", "frames=20")
    assert parse_topology(other).arrivals_per_s == 20


def test_the_last_run_that_measured_anything_counts(tmp_path):
    path = played(tmp_path / "vld.history", sj.read_topology(VLD))
    played(path, sj.read_topology(VLD), lasts_s=0.0)
    assert "# measured in run 1 of vld" in said("topology", "--measured", "--history", path)
    assert "has no turn with measurements" in refused(
        "topology", "--measured", "--history", path, "--run", 2
    )


def test_a_run_that_ended_without_load_is_written_with_the_last_one_it_had(tmp_path):
    vld = sj.read_topology(VLD)
    path = tmp_path / "vld.history"
    ended = Workload(rates={"frames": Rates.steps((0, 13.0), (30, 0.0))})
    played(path, vld, lasts_s=300.0, workload=ended)
    written = parse_topology(said("topology", "--measured", "--history", path))
    assert written.arrivals_per_s == pytest.approx(13, rel=0.3)
    assert read(path).topology.arrivals_per_s == pytest.approx(0.05)


def test_operators_that_were_not_measured_are_named(tmp_path):
    vld = sj.read_topology(VLD)
    path = played(tmp_path / "vld.history", vld, really=vld.scaled(1e-3))
    written = said("topology", "--measured", "--history", path)
    assert "# fewer than 30 records of extract, match, aggregate were measured" in written


def test_without_a_history_it_is_said_what_there_is():
    assert "no application has run on this machine" in refused("topology", "--measured")
    played(kept("other"), sj.read_topology(VLD), lasts_s=10.0)
    error = refused("topology", VLD, "--measured")
    assert "no history of an application 'vld'; known applications: other" in error


def test_what_makes_no_sense_is_refused():
    assert "no application is named" in refused("topology")
    assert "--history, --run and --app need --measured" in refused("topology", VLD, "--run", 2)


def test_of_several_histories_the_last_written_is_read():
    first, second = (played(kept(name), sj.read_topology(VLD), lasts_s=10.0) for name in "ab")
    os.utime(first, (2e9, 2e9))
    assert str(first) in said("topology", "--measured")
    os.utime(second, (3e9, 3e9))
    assert str(second) in said("topology", "--measured")
    assert str(first) in said("topology", "--measured", "--app", "a")


def test_the_projections_of_a_part_are_shown_with_it():
    told = (
        "spark.shelf:alone",
        "--allocation",
        "clean=1,check=1,public=1",
        "--rate",
        "orders=9",
    )
    line = "part        check (with clean, public): reads orders, writes public"
    assert line in said("explain", *told).splitlines()
    (part,) = json.loads(said("explain", *told, "--json"))["parts"]
    assert part["projections"] == ["clean", "public"]

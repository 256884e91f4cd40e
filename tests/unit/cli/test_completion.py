"""What Tab offers, asked as bash asks for it; and that every help teaches."""

from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
import typer.main
from typer.testing import CliRunner

import sojourn as sj
from live_engine import LiveSimulator
from sojourn.act.policy import policy
from sojourn.cli import app
from sojourn.decide.plan import Plan
from sojourn.engine import Health, NodeHealth
from sojourn.model.station import names as station_names
from sojourn.service.control import serving
from sojourn.service.folders import state_folder
from sojourn.service.name_lock import NameLock
from sojourn.service.orders import LoopSettings
from sojourn.service.requests import answer
from sojourn.service.status import status
from sojourn.service.supervisor import Supervisor

EXAMPLES = Path(__file__).parents[3] / "examples"
VLD = sj.read_topology(EXAMPLES / "vld.yaml")


@pytest.fixture(autouse=True)
def own(places):
    return places


def offered(*words):
    """Return what is offered for the last of the words."""
    environment = {
        "_SOJOURN_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(["sojourn", *words]),
        "COMP_CWORD": str(len(words)),
    }
    done = CliRunner().invoke(app, [], env=environment, prog_name="sojourn")
    assert not done.stderr
    return done.stdout.split()


@contextmanager
def listening(tmp_path, name="vld"):
    """Let an application of that name be there for commands."""
    engine = LiveSimulator()
    engine.start(VLD, Plan.here({"extract": 1, "match": 1, "aggregate": 1}))

    def make(target, most):
        return policy("drs", target=target, most=most), ""

    running = Supervisor(
        engine,
        VLD,
        make,
        LoopSettings(objective=sj.Objective(target=sj.Target("mean", 2.0)), most=25),
    )
    with (
        NameLock(name, address="apps:app", state=tmp_path, logs=tmp_path / "logs") as claim,
        serving(
            claim.socket,
            claim.token,
            partial(answer, running, partial(status, running)),
        ),
    ):
        yield running


def test_commands_options_policies_and_models_are_offered():
    assert offered("rep") == ["reproduce"]
    assert "--target-p95" in offered("plan", "x.yaml", "--target")
    assert offered("plan", "x.yaml", "--model", "") == list(station_names())
    assert offered("run", "x.yaml", "--policy", "dr") == ["drs"]
    assert offered("compare", "x.yaml", "--policies", "drs,stat") == ["drs,static"]
    assert offered("compare", "x.yaml", "--policies", "static,stat") == []
    assert offered("policies", "dr") == ["drs"]


def test_topologies_and_folders_are_offered(tmp_path, monkeypatch):
    here = tmp_path / "here"
    (here / "very").mkdir(parents=True)
    monkeypatch.chdir(here)
    for name in ("vld.yaml", "vld.csv", "words.json", ".hidden.yaml", "very/deep.yml"):
        (here / name).touch()
    assert offered("plan", "v") == ["very/", "vld.yaml"]
    assert offered("run", "") == ["very/", "vld.yaml", "words.json"]
    assert offered("topology", "very/") == ["very/deep.yml"]
    assert offered("plan", "nowhere/") == []


def test_applications_that_run_and_their_operators_are_offered(tmp_path):
    logs = tmp_path / "one" / "logs"
    logs.mkdir(parents=True)
    (logs / "match.log").touch()
    state_folder("old").mkdir(parents=True)
    (state_folder("old") / "history").touch()
    with listening(tmp_path / "one"):
        assert offered("scale", "") == ["extract=", "match=", "aggregate="]
        assert offered("scale", "match=3", "m") == []
        assert offered("logs", "") == ["match"]
        assert offered("logs", "--state", str(tmp_path / "one"), "m") == ["match"]
        with listening(tmp_path / "two", "mill"):
            assert offered("top", "--app", "") == ["mill", "vld"]
            assert offered("pause", "--app", "m") == ["mill"]
            assert offered("history", "--app", "") == ["mill", "vld", "old"]
            assert offered("scale", "") == [], "it is not clear whose"
            assert offered("scale", "--app", "mill", "e") == ["extract="]


def test_operators_that_keep_a_state_are_offered(tmp_path):
    (tmp_path / "application.json").write_text('{"states": {"count": {}}}')
    for folder in (str(tmp_path), tmp_path.as_uri()):
        assert offered("state", "--state", folder, "") == ["count"]
    assert offered("state", "--app", "words", "") == [], "its folder is not known"


def test_nodes_of_a_cluster_are_offered(tmp_path, monkeypatch):
    nodes = (NodeHealth(name="executor-1"), NodeHealth(name="executor-2"))
    monkeypatch.setattr(LiveSimulator, "health", lambda _engine: Health(nodes=nodes))
    with listening(tmp_path):
        assert offered("logs", "--node", "") == ["executor-1", "executor-2"]


def test_where_nothing_runs_nothing_is_offered_and_nothing_said():
    assert offered("scale", "") == offered("logs", "") == offered("top", "--app", "") == []


def test_every_command_has_an_example_and_a_place_in_the_help():
    commands = typer.main.get_command(app).commands
    for name, command in commands.items():
        assert f"sojourn {name}" in command.help, name
        assert command.rich_help_panel, name
    shown = CliRunner().invoke(app, ["--help"]).stdout
    panels = ("Plan", "Try out", "Run and watch", "Control a running application", "Kafka")
    places = [shown.index(f"─ {panel} ─") for panel in panels]
    assert places == sorted(places)

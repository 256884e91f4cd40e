"""The applications of the papers, as the command shows them and checks them."""

import json

import pytest
from typer.testing import CliRunner

from sojourn.cli import app
from sojourn_papers.apps.catalogue import CATALOGUE
from sojourn_papers.apps.check import Verdict


def sojourn(*arguments):
    return CliRunner().invoke(app, ["apps", *arguments])


def test_all_are_listed_with_their_operators():
    told = json.loads(sojourn("--json").stdout)["applications"]
    assert [each["name"] for each in told] == list(CATALOGUE)
    listed = sojourn().stdout
    for each in told:
        assert each["operators"] == list(CATALOGUE[each["name"]].app.operators)
        assert each["name"] in listed


@pytest.mark.parametrize("asked", [["check"], ["list", "wordcount"], ["weigh", "wordcount"]])
def test_what_is_not_an_action_is_refused_with_those_there_are(asked):
    done = sojourn(*asked)
    assert done.exit_code == 2
    assert "is not an action; write list, or check" in done.stderr
    assert "wordcount" in done.stderr


@pytest.mark.parametrize(("lost", "status"), [(0, 0), (2, 1)])
def test_a_check_fails_if_results_differ(lost, status, monkeypatch):
    verdict = Verdict(sent=20, expected=40, missing=lost)
    asked = {}
    monkeypatch.setattr(
        "sojourn_papers.apps.check.check", lambda _made, **told: asked.update(told) or verdict
    )
    done = sojourn("check", "wordcount", "--rate", "5", "--for", "3s", "--json")
    assert (done.exit_code, json.loads(done.stdout)["exact"]) == (status, not lost)
    assert (asked["per_s"], asked["lasts_s"]) == (5.0, 3.0)
    assert str(verdict) in sojourn("check", "wordcount").stdout

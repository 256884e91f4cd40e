import json

import pytest
from typer.testing import CliRunner

from sojourn.act.policy import names
from sojourn.cli import app


def run(*arguments):
    return CliRunner().invoke(app, ["policies", *arguments])


def test_the_options_of_a_policy_are_listed_with_what_they_mean():
    said = run("ds2").stdout
    assert "Gives each operator the processors that its measured rate requires." in said
    assert "warm_up             WHOLE NUMBER   1         observations ignored" in said
    assert "drs" not in said


def test_all_are_listed_and_one_without_options_has_no_table():
    said = run().stdout
    assert all(f"{name}\n" in said for name in names())
    assert run("static").stdout == "static\nNever changes the allocation.\n"


def test_json_tells_the_same():
    (told,) = json.loads(run("threshold", "--json").stdout)["policies"]
    assert told["name"] == "threshold"
    assert told["options"][2] == {
        "name": "down_s",
        "value": "TIME",
        "default": "300s",
        "meaning": "time over which the highest recommendation is kept",
    }


@pytest.mark.parametrize("name", ["oracle", "nowhere.at:all"])
def test_one_that_does_not_exist_is_refused(name):
    done = run(name)
    assert done.exit_code == 2
    assert f"unknown policy '{name}'" in done.stderr

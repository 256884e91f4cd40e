"""`sojourn objective` as a user runs it."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sojourn.cli import app
from sojourn.errors import BadWorkload
from sojourn.simulate.workload import Rates

EXAMPLES = Path(__file__).parents[3] / "examples"
SHORT = (
    "objective",
    EXAMPLES / "vld.yaml",
    "--trace",
    EXAMPLES / "doubling.csv",
    "--faster",
    "10",
    "--target-p95",
    "3s",
)


def run(*arguments):
    return CliRunner().invoke(app, [*map(str, SHORT), *map(str, arguments)])


def test_it_shows_what_each_part_takes():
    done = run("--kept", "90%", "--kept", "99.5%", "--price-per-hour", 0.5)
    assert done.exit_code == 0, done.output
    head, names, _line, first, second = done.stdout.splitlines()
    assert head == "vld · drs, p95 ≤ 3 s · 0:04:00 of load"
    assert names.split("  ")[0] == "required"
    assert (first.split()[0], second.split()[0]) == ("90%", "99.5%")
    processors, price = float(second.split()[3]), float(second.split()[-1])
    assert price == pytest.approx(24 * 0.5 * processors, abs=0.1)


def test_json_has_the_same_and_a_trace_is_repeated():
    done = run("--kept", "95%", "--seeds", 2, "--for", "10m", "--json")
    found = json.loads(done.stdout)
    assert (found["lasts_s"], found["every_s"], found["price_per_day"]) == (600.0, 3.0, None)
    (level,) = found["levels"]
    assert level["required"] == 0.95
    assert level["slices"] == pytest.approx(20, abs=2)
    assert level["processors"]["value"] > 10


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--kept", "100%"), "write more than 0% and less than 100%"),
        (("--kept", "often"), "is not a percentage"),
        (("--for", "0s"), "--for"),
        (("--slice", "0s"), "slice"),
    ],
)
def test_bad_input_is_refused(arguments, said):
    done = run(*arguments)
    assert done.exit_code == 2
    assert said in done.stderr


def test_repeated_rates_are_those_of_the_time_within_the_period():
    rates = Rates(((0.0, 1.0), (4.0, 3.0), (4.0, 8.0), (10.0, 2.0)))
    longer = rates.repeated(34.0)
    assert longer.points[-1] == (34.0, 3.0)
    for at_s in (0.0, 1.5, 3.9, 4.0, 9.0):
        for period_s in (0, 10, 20):
            assert longer.at(period_s + at_s) == pytest.approx(rates.at(at_s))
    assert rates.repeated(2.0).points == ((0.0, 1.0), (2.0, 2.0))


@pytest.mark.parametrize("until_s", [0.0, -1.0, float("inf"), float("nan")])
def test_rates_cannot_be_repeated_for_no_time_or_for_ever(until_s):
    with pytest.raises(BadWorkload, match="cannot be repeated"):
        Rates(((0.0, 1.0), (4.0, 3.0))).repeated(until_s)
    with pytest.raises(BadWorkload, match="cannot be repeated"):
        Rates(((0.0, 1.0),)).repeated(10.0)

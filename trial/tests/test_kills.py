"""What is drawn from a seed, and how what arrived is compared: without Spark."""

import doctest
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sojourn.spark.driver.state.checkpoints import Checkpoints
from sojourn.spark.host.batch.cut import Cut, CutId
from sojourn.spark.host.batch.cut_store import CutFiles
from sojourn_trial.applications import nested_app, two_parts_app
from sojourn_trial.cases import case
from sojourn_trial.kills import kill_points, kill_steps, ledger, victims
from sojourn_trial.kills import schedule as kills
from sojourn_trial.kills.kill_steps import Order, Steps, is_open

SEEDS = st.integers(0, 2**32)


@pytest.mark.parametrize("module", [case, kill_points, kills, ledger, victims])
def test_examples_in_the_harness_are_true(module):
    assert doctest.testmod(module).failed == 0


@given(SEEDS, st.integers(1, 40), st.floats(1.0, 1e4))
def test_kills_are_in_time_and_fair(seed, number, within_s):
    drawn = kills.drawn(seed, kills=number, within_s=within_s)
    assert drawn == kills.drawn(seed, kills=number, within_s=within_s)
    assert [kill.at_s for kill in drawn] == sorted(kill.at_s for kill in drawn)
    assert all(0 <= kill.at_s <= within_s and 0 <= kill.pick < 1 for kill in drawn)
    times = Counter(dict.fromkeys(kills.TARGETS, 0))
    times.update(kill.target for kill in drawn)
    assert times.total() == number
    assert max(times.values()) - min(times.values()) <= 1


@given(SEEDS, st.integers(1, 40), st.floats(1.0, 1e4))
def test_rescales_are_in_time_and_within_bounds(seed, number, within_s):
    before = two_parts_app.ALLOCATION
    drawn = kills.rescales(seed, before, number=number, within_s=within_s)
    assert drawn == kills.rescales(seed, before, number=number, within_s=within_s)
    assert [each.at_s for each in drawn] == sorted(each.at_s for each in drawn)
    assert all(
        each.allocation and 1 <= processors <= 2 * before[name]
        for each in drawn
        for name, processors in each.allocation.items()
    )


@given(SEEDS, st.integers(1, 40))
def test_moments_are_fair_to_all_files(seed, number):
    drawn = kills.moments(seed, number)
    assert drawn == kills.moments(seed, number)
    times = Counter(dict.fromkeys(kills.LOGS, 0))
    times.update(moment.log for moment in drawn)
    assert max(times.values()) - min(times.values()) <= 1
    assert all(0 <= moment.after_s <= 0.5 for moment in drawn)


@given(st.lists(st.integers(0, 5)), st.lists(st.integers(0, 5)), st.lists(st.integers(10, 12)))
def test_what_is_added_and_taken_away_is_found(offline, more, unheard):
    outcome = ledger.compare(offline, [*offline, *unheard])
    assert (outcome.lost, outcome.twice) == (Counter(), Counter())
    assert outcome.wrong == Counter(unheard)
    again = ledger.compare(offline, offline + [n for n in more if n in offline])
    assert again.twice == Counter(n for n in more if n in offline)
    assert not again.lost + again.wrong
    assert ledger.compare([*offline, *more], offline).lost == Counter(more)


@given(st.permutations(range(6)))
def test_keys_whose_results_change_places_are_found(order):
    outcome = ledger.compare(range(6), order, key=lambda number: number % 2)
    odd = [n for n in order if n % 2]
    even = [n for n in order if not n % 2]
    assert outcome.disordered == {
        key for key, came in ((1, odd), (0, even)) if came != sorted(came)
    }
    assert outcome.exact


def test_records_of_the_nested_loops_go_round_both():
    results = [result for number in range(300) for result in nested_app.results(number)]
    assert len(set(results)) == len(results)
    assert any(inner and outer for *_, inner, outer in results)


def test_what_two_parts_make_of_roots_is_told_apart():
    """Results that are the same could not be counted; all ways must be taken by some."""
    due = two_parts_app.expected([(n, nested_app.key_of(n)) for n in range(300)])
    assert all(len(set(rows)) == len(rows) for rows in due.values())
    done = due["done"]
    assert {two_parts_app.side(number, part) for number, _, part, *_ in done} == {
        "left",
        "right",
    }
    assert any(inner and outer for _, _, _, inner, outer, *_ in done)
    assert any(round_ for *_, round_ in done)
    assert {piece for *_, piece, _ in done} == set(range(two_parts_app.PIECES))


def test_files_of_a_batch_are_where_checkpoints_keep_them(tmp_path):
    """A kill that waits for a file of another folder would never happen."""
    state = Checkpoints(tmp_path)
    cuts = CutFiles(state.cuts("part"))
    cuts.save(Cut(id=CutId(0, 1), taken={}))
    checkpoint = state.checkpoint("part")
    assert [path.name for path in (checkpoint / kills.LOGS[0]).iterdir()] == ["0-1"]


def test_an_order_is_followed_once_and_when_it_says(tmp_path):
    steps = Steps(tmp_path / "count")
    assert steps.taken("log: after an entry") is None
    Order("log: after an entry", times=2, whom="driver").give(tmp_path, "count")
    came = ["cut: before it is written", *["log: after an entry"] * 3]
    assert [steps.taken(step) for step in came] == [None, None, "driver", None]
    assert not is_open(tmp_path, "count")
    Order("log: after an entry").give(tmp_path, "count")
    assert is_open(tmp_path, "count")
    assert steps.taken("log: after an entry") == "host"


def test_every_step_is_put_into_a_host(tmp_path):
    """A function that was renamed would make the benchmark wait for a step in vain."""
    at_start = Path(kill_steps.__file__).parent / "at_start"
    path = os.pathsep.join([str(at_start), *sys.path])
    done = subprocess.run(
        [sys.executable, "-m", "sojourn.spark.host", "words"],
        input=b"",  # without settings it ends at once
        env={**os.environ, kill_steps.FOLDER: str(tmp_path), "PYTHONPATH": path},
        capture_output=True,
        check=False,
    )
    assert b"Input data was truncated" in done.stderr
    assert b"sitecustomize" not in done.stderr

"""The error budget survives a restart."""

from dataclasses import replace

import pytest

from sojourn.decide.objective import Objective
from sojourn.decide.target import Target
from sojourn.knowledge import ErrorBudget
from sojourn.service.last_budget import LastBudget

OBJECTIVE = Objective(target=Target("p95", 3.5))
SETTLED = ErrorBudget(
    objective=OBJECTIVE,
    level=0.031,
    judged=500,
    missed=6,
    causes={"a batch ended": 1},
    born=50_000,
    in_time=49_000,
)
BEGUN = ErrorBudget(objective=OBJECTIVE)


def test_a_restart_resumes_the_budget_without_open_slices(tmp_path):
    LastBudget(tmp_path).save(replace(SETTLED, since=500))
    assert LastBudget(tmp_path).resumed(OBJECTIVE) == SETTLED


class Clock:
    now_s = 1000.0

    def __call__(self):
        return self.now_s


@pytest.mark.parametrize(
    ("ended", "at_s", "slices"),
    [
        (False, 1059.0, 0),
        (False, 1300.0, 5),
        (False, 900.0, 0),  # the clock was set back
        (False, 1e9, 1440),
        (True, 1300.0, 0),
    ],
)
def test_slices_until_the_next_start_are_missed_unless_it_was_ended_in_order(
    tmp_path, ended, at_s, slices
):
    clock = Clock()
    last = LastBudget(tmp_path, clock=clock)
    last.save(SETTLED)
    clock.now_s += 1  # judged nothing since
    last.save(SETTLED)
    if ended:
        last.end()
    clock.now_s = at_s
    again = LastBudget(tmp_path, clock=clock)
    resumed = again.resumed(OBJECTIVE)
    assert (resumed.judged, resumed.missed) == (500 + slices, 6 + slices)
    assert (resumed.level, resumed.left) == (0.031, 14 - slices)
    assert resumed.causes.get("the application was not running", 0) == slices
    assert (f"not running for {slices} slices of 60 s" in again.note) == (slices > 0)


def test_of_another_objective_the_level_is_resumed(tmp_path):
    LastBudget(tmp_path).save(SETTLED)
    other = replace(OBJECTIVE, kept=0.95)
    assert LastBudget(tmp_path).resumed(other) == ErrorBudget(objective=other, level=0.031)


@pytest.mark.parametrize(
    "content",
    [
        None,
        b"",
        b"[1]",
        b'{"level": "high"}',
        b'{"objective": {}, "level": NaN, "judged": 1, "missed": 0, "causes": {}}',
    ],
)
def test_without_a_readable_file_it_begins_anew(tmp_path, content):
    if content is not None:
        (tmp_path / "error_budget.json").write_bytes(content)
    assert LastBudget(tmp_path).resumed(OBJECTIVE) == BEGUN


@pytest.mark.parametrize(("saved", "resumed"), [(1e9, 9.0), (-3.0, -0.5)])
def test_a_level_that_cannot_be_is_limited(tmp_path, saved, resumed):
    LastBudget(tmp_path).save(replace(SETTLED, level=saved))
    assert LastBudget(tmp_path).resumed(OBJECTIVE).level == resumed


def test_a_file_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "error_budget.json.new").mkdir()
    last = LastBudget(tmp_path)
    last.save(SETTLED)
    assert "cannot be written" in last.failure
    (tmp_path / "error_budget.json.new").rmdir()
    last.save(SETTLED)
    assert last.failure == ""
    assert last.resumed(OBJECTIVE) == SETTLED


def test_nothing_is_written_without_an_objective(tmp_path):
    LastBudget(tmp_path).save(None)
    assert list(tmp_path.iterdir()) == []

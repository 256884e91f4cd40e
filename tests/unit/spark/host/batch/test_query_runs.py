"""Numbers of attempts: kept, rising, and few on disk."""

import shutil

from sojourn.spark.host.batch.query_runs import Attempts


def test_a_later_run_has_a_higher_number_and_the_folder_stays_small(tmp_path):
    attempts = Attempts(tmp_path / "attempts")
    numbers = [attempts.number(f"run-{n}") for n in range(250)]
    assert numbers == list(range(1, 251))
    assert len(list((tmp_path / "attempts").iterdir())) <= 102
    another = Attempts(tmp_path / "attempts")
    assert [another.number(f"run-{n}") for n in (249, 200, 250)] == [250, 201, 251]


def test_files_are_touched_for_the_first_task_of_a_run_alone(tmp_path):
    """Every task of every batch asks, in the event loop of a host."""
    attempts = Attempts(tmp_path / "attempts")
    first = attempts.number("run")
    shutil.rmtree(tmp_path / "attempts")
    assert attempts.number("run") == first
    assert not (tmp_path / "attempts").exists()


def test_a_number_that_another_host_removes_meanwhile_is_passed_over(tmp_path):
    (tmp_path / "7").symlink_to("gone")
    assert Attempts(tmp_path).number("run") == 8

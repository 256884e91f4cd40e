"""Cycles are found among new objects; what a killed application leaves is removed."""

import asyncio
import gc
import os
import weakref

import pytest

from sojourn.spark.host.__main__ import collect_seldom, remove_after
from sojourn.spark.host.execution import collect_if_few


class Cycle:
    """Refers to itself."""

    def __init__(self):
        self.itself = self


@pytest.fixture(autouse=True)
def as_before():
    """Leave the collector as it was."""
    before = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*before)


@pytest.mark.parametrize(("records", "found"), [(0, True), (9_999, True), (10_000, False)])
def test_old_cycles_are_found_unless_many_records_are_open(records, found):
    collect_seldom()
    cycle = weakref.ref(Cycle())
    gc.collect(0)
    collect_if_few(records)
    assert (cycle() is None) or not found


def test_new_cycles_are_found_without_a_look_at_what_is_older():
    collect_seldom()
    assert gc.get_freeze_count() > 0
    generations, cycles = set(), []
    gc.callbacks.append(lambda _, about: generations.add(about["generation"]))
    try:
        cycles += (weakref.ref(Cycle()) for _ in range(200_000))
    finally:
        gc.callbacks.pop()
    assert generations == {0}
    assert sum(cycle() is not None for cycle in cycles) < 20_000


def test_the_folder_goes_if_the_process_is_gone(tmp_path):
    folder = tmp_path / "left"
    (folder / "spark").mkdir(parents=True)
    asyncio.run(remove_after(os.getppid() + 1, folder, for_s=0.2))
    assert not folder.exists()


def test_the_folder_stays_while_the_process_is_there(tmp_path):
    asyncio.run(remove_after(os.getppid(), tmp_path, within_s=0.2))
    assert tmp_path.exists()

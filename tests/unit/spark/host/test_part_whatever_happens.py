"""A part in any history of failures: nothing is lost, counted twice or waited for."""

from collections import Counter
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sojourn.spark.host.state import reminders
from unit.spark.host.failing_disk import FailingDisk
from unit.spark.host.spark_stand_in import (
    EXPIRING,
    REMINDERS,
    TWICE,
    Files,
    World,
    called,
    expected,
    expected_states,
)

EVENTS = [
    *["produce", "start", "rescale", "time_passes", "clock_jumps", "drain"],
    *["kill_processor", "kill_worker", "kill_host", "kill_in_step", "swap_host"],
    *["kill_driver", "node", "lose_executor", "produce_twice"],
    *["vanish", "speak_again", "stop_query", "stand_still"],
]
ON_FILES = [*EVENTS, *["kill_in_step", "power_fails"] * 2, "fill_disk", "make_room"]
# Files in memory, on a system that has this folder: nothing has to wait for a real disk.
_MEMORY = "/dev/shm"


def _of(events):
    return st.lists(
        st.tuples(st.sampled_from(events), st.integers(0, 11), st.integers(0, 60)), max_size=40
    )


_histories, _histories_on_files = _of(EVENTS), _of(ON_FILES)
_seeds = st.integers(0, 2**32)


class Reader:
    """Reads a sink and leaves out what comes twice, with no more memory than it needs."""

    def __init__(self):
        self.floors, self.known, self.read = {}, {}, []

    def take(self, leaving, floor):
        partition, offset = leaving.root
        if floor > self.floors.get(partition, 0):
            self.floors[partition] = floor
            self.known = {
                name: root
                for name, root in self.known.items()
                if root.offset >= self.floors.get(root.partition, 0)
            }
        name = called(leaving)
        if offset >= self.floors.get(partition, 0) and name not in self.known:
            self.known[name] = leaving.root
            self.read.append(name)


def _payload(leaving):
    return b"" if leaving.record is None else leaving.record.payload


@settings(max_examples=100)
@given(history=_histories, seed=_seeds, away=st.booleans())
def test_whatever_fails_between_any_two_steps(history, seed, away):
    """After each event so many steps happen, in an order that the seed says."""
    _holds(World(away=away), history, seed)


@settings(max_examples=100)
@given(history=_histories_on_files, seed=_seeds, away=st.booleans())
def test_whatever_fails_between_any_two_system_calls(history, seed, away):
    """The same on real files: hosts die between any two calls, and the power fails."""
    _holds_on_files(history, seed, away=away)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@settings(max_examples=2500)
@given(history=_histories, seed=_seeds, away=st.booleans())
def test_many_histories_of_steps(history, seed, away):
    _holds(World(away=away), history, seed)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@settings(max_examples=2500)
@given(history=_histories_on_files, seed=_seeds, away=st.booleans())
def test_many_histories_of_system_calls(history, seed, away):
    _holds_on_files(history, seed, away=away)


def _holds_on_files(history, seed, *, away):
    with (
        TemporaryDirectory(dir=_MEMORY if Path(_MEMORY).is_dir() else None) as folder,
        FailingDisk(folder) as disk,
    ):
        world = World(Files(disk), away=away)
        try:
            _holds(world, history, seed)
        finally:
            world.close()


def _holds(world, history, seed):
    """Let a history happen, and all that is left to do after it; look at what comes of it."""
    random = Random(seed)
    often = random.choice([0.1, 0.6])
    for number in range(24 if world.away else 12):
        world.produce(number)
    with mock.patch.object(reminders, "_AT_ONCE", 2):  # many are due together
        for event, number, then in history:
            world.happens(getattr(world, event), number)
            world.run(then, random, often)
        world.settle(random)
    records, results = expected(world.roots())
    assert {called(leaving) for leaving, _ in world.sink} == set(results)
    assert world.counted[world.files().last(world.committed)] == Counter(records)
    assert world.states() == expected_states(records)
    assert world.states(EXPIRING) == {}  # all that was there has expired
    reader = Reader()
    for leaving, floor in world.sink:
        reader.take(leaving, floor)
    again = _again(reader.read)
    # after a power failure reminders are asked for again, for another time
    assert all(name.startswith(TWICE) or world.power_failed for name in again)
    assert all(name.startswith((TWICE, REMINDERS)) for name in again)
    # what comes again is what it was: nothing is worked out in another order
    content = {(_place(leaving), _payload(leaving)) for leaving, _ in world.sink}
    assert world.power_failed or not _again(place for place, _ in content)


def _again(names):
    return {name for name, times in Counter(names).items() if times > 1}


def _place(leaving):
    """Return what tells a result from others; a producer may have given an id twice."""
    name = called(leaving)
    return (name, leaving.root) if name.startswith(TWICE) else name

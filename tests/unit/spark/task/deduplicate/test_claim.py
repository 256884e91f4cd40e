"""Tasks that take over a partition of a sink, and those that come back: on real files."""

import os

import pytest

from sojourn.errors import EngineError
from sojourn.spark.task.deduplicate.sink_filter import Claim


class Clock:
    """A clock that is set by the test, and goes on while somebody waits."""

    def __init__(self):
        self.now_s, self.waited_s = 100.0, []

    def __call__(self):
        return self.now_s

    def wait(self, seconds):
        self.waited_s.append(seconds)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def claim(tmp_path, clock):
    return lambda: Claim(tmp_path, 3, clock=clock, wait=clock.wait)


def test_a_task_that_comes_back_ends_before_it_passes_on_anything(claim, clock):
    first, second = claim(), claim()
    assert first.take() is None
    clock.now_s += 60.0  # in which it is cut off
    assert second.take() >= 0.0
    with pytest.raises(EngineError, match="another task has taken over partition 3"):
        first.renew()
    with pytest.raises(EngineError, match="another task has taken over partition 3"):
        first.check()
    second.check()


def test_the_file_is_not_read_for_every_record(claim, clock, tmp_path):
    held = claim()
    held.take()
    (tmp_path / "3.claim").unlink()
    clock.now_s += 0.4
    held.renew()
    clock.now_s += 0.2
    with pytest.raises(FileNotFoundError):
        held.renew()


def test_who_takes_over_waits_until_what_was_sent_is_too_old(claim, clock, tmp_path):
    claim().take()
    os.utime(tmp_path / "3.claim", (0.0, (tmp_path / "3.claim").stat().st_mtime - 4.0))
    after = claim()
    after.outwait(after.take(), fence_s=10.0)
    (waited_s,) = clock.waited_s
    assert waited_s == pytest.approx(6.5, abs=1.0)
    after.outwait(60.0, fence_s=10.0)
    after.outwait(None, fence_s=10.0)
    assert len(clock.waited_s) == 1


def test_claims_are_renewed_while_a_task_passes_records_on(claim, clock, tmp_path):
    held = claim()
    held.take()
    os.utime(tmp_path / "3.claim", (0.0, 0.0))
    clock.now_s += 1.0
    held.renew()
    assert (tmp_path / "3.claim").stat().st_mtime > 0.0

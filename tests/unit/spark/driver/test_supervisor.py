"""Which failures of queries end an application; Spark itself fails in tests/spark."""

import threading
from itertools import count
from types import SimpleNamespace

import pytest

from sojourn.spark.driver.disk_watch import DiskWatch
from sojourn.spark.driver.restarts import Restarts
from sojourn.spark.driver.supervisor import QuerySupervisor


class NoHosts:
    def __init__(self):
        self.lost = {}

    def lost_nodes(self):
        return dict(self.lost)

    def stopped(self):
        return {}

    def ended(self):
        return {}


class Failed:
    """A query that has ended before anybody looks."""

    isActive = False  # noqa: N815 - as PySpark calls it

    def __init__(self, error=None):
        self._error = error

    def exception(self):
        return self._error

    def stop(self):
        pass


class Watched:
    """Queries of which one always fails, every half minute, at the batch that is told."""

    def __init__(
        self,
        batch,
        broker=lambda: "well",
        loses=lambda _starts: False,
        disk=None,
        error=None,
    ):
        self._error = error
        clock_s = count(0, 30)
        self.starts, self.reason, self.over = 0, "", threading.Event()
        self.log, self._clock_s, self._loses = [], clock_s, loses
        self._hosts = NoHosts()
        self.supervisor = QuerySupervisor(
            self._hosts,
            {},
            {"split": self._start},
            wanted=None,
            batch=batch,
            failed=self._failed,
            broker=broker,
            look_s=0.001,
            clock=self._now_s,
            disk=disk,
            log=self.log.append,
        )

    def _now_s(self):
        """Return the time, half a minute later; a node may have been lost just now."""
        now_s = next(self._clock_s)
        if self._loses(self.starts):
            self._hosts.lost = {f"executor-{self.starts}": float(now_s)}
        return now_s

    def run(self):
        """Return when it is over, or it has gone on for long."""
        self.supervisor.start()
        try:
            assert self.over.wait(60)
        finally:
            self.supervisor.stop()

    def _start(self):
        self.starts += 1
        if self.starts > 50:
            self.over.set()
        return Failed(self._error)

    def _failed(self, reason):
        self.reason = reason
        self.over.set()


class Silent:
    """A query that does not answer when it is asked the first few times."""

    def __init__(self, times, answered):
        self.times, self.answered = times, answered

    @property
    def isActive(self):  # noqa: N802 - as PySpark calls it
        if self.times:
            self.times -= 1
            raise ConnectionError("broken pipe")
        self.answered.set()
        return True

    def stop(self):
        pass


@pytest.mark.parametrize(("times", "reason"), [(2, ""), (3, "Spark does not answer: Conn")])
def test_java_that_does_not_answer_is_asked_again_before_it_counts_as_gone(times, reason):
    over, told = threading.Event(), []

    def failed(why):
        told.append(why)
        over.set()

    watching = QuerySupervisor(
        NoHosts(),
        {},
        {"split": lambda: Silent(times, over)},
        wanted=None,
        batch=lambda _: 0,
        failed=failed,
    )
    watching.start()
    try:
        assert over.wait(60)
    finally:
        watching.stop()
    assert "".join(told).startswith(reason)
    assert len(told) == bool(reason)


def test_a_batch_that_always_fails_ends_the_application():
    watched = Watched(lambda _: 7)
    watched.run()
    assert "split failed 6 times at batch 7" in watched.reason
    assert watched.starts == 6


def test_failures_with_progress_in_between_do_not():
    watched = Watched(lambda _: watched.starts // 4)
    watched.run()
    assert not watched.reason


def test_too_many_failures_at_once_end_it_whatever_it_is_at():
    restarts = Restarts()
    delays = [restarts.delay_s(float(n), batch=n) for n in range(9)]
    assert delays[-1] is None
    assert None not in delays[:-1]
    assert restarts.why == "failed 9 times in 120 s"


def test_failures_while_brokers_are_shaky_do_not_end_it():
    """Not even at the same batch: a partition without a leader may take hours."""
    watched = Watched(lambda _: 7, broker=lambda: "shaky")
    watched.run()
    assert not watched.reason


def test_while_no_broker_answers_nothing_is_started_and_then_it_is():
    starts = []

    def standing():
        starts.append(watched.starts)
        return "away" if len(starts) <= 20 else "shaky"

    watched = Watched(lambda _: 7, broker=standing)
    watched.run()
    assert starts[:20] == [1] * 20
    assert watched.starts > 20
    assert not watched.reason


def test_batches_that_fail_because_nodes_are_lost_are_tried_for_ever():
    """Machines that may be taken away are no fault of the application."""
    watched = Watched(lambda _: 7, loses=lambda _starts: True)
    watched.run()
    assert not watched.reason
    assert (
        "split failed at batch 7, and is restarted; not counted, because executor-"
        in watched.log[0]
    )
    assert "not counted, because" in watched.log[0]
    (notice,) = watched.supervisor.notices
    assert notice.startswith(
        "split: batch 7 failed 3 times or more because a node was lost; it"
    )
    assert watched.supervisor.restarts == {"split": watched.starts - 1}


def test_failures_count_again_once_no_node_is_lost_any_more():
    watched = Watched(lambda _: 7, loses=lambda starts: starts < 20)
    watched.run()
    assert "split failed 6 times at batch 7" in watched.reason
    assert 20 < watched.starts < 30
    assert "is not restarted: it ended without an error" in watched.log[-1]


def test_a_batch_that_ends_after_all_is_no_notice_any_more():
    at = SimpleNamespace(batch=7)
    watched = Watched(lambda _: at.batch, loses=lambda _starts: True)
    watched.run()
    assert watched.supervisor.notices
    at.batch = 8
    assert watched.supervisor.notices == ()


def test_a_failure_before_its_node_is_known_to_be_lost_is_forgiven():
    """Spark may notice later than a batch fails."""
    restarts = Restarts()
    for n in range(8):
        assert restarts.delay_s(100.0 * n, batch=3) is not None
        restarts.forgive(100.0 * n - 30.0)
    assert restarts.excused == (8, 3)


FULL = "JOB_ABORTED: it failed\njava.io.IOException: No space left on device\n\tat java.base/x"


class Disk(DiskWatch):
    """A disk on which there is no room until somebody has looked so many times."""

    def __init__(self, looks):
        super().__init__(())
        self.looks, self.left, self.lacked = looks, 0, []

    def lacks(self, why):
        self.left = self.looks
        self.lacked.append(why)

    @property
    def full_s(self):
        return 1.0 if self.left else None

    def look(self):
        self.left = max(0, self.left - 1)


def test_a_query_that_fails_on_a_full_disk_is_started_again_when_there_is_room():
    """However often, and at whatever batch."""
    disk = Disk(looks=3)
    watched = Watched(lambda _: 7, disk=disk, error=FULL)
    watched.run()
    assert not watched.reason
    assert set(disk.lacked) == {"java.io.IOException: No space left on device"}
    assert len(disk.lacked) in (watched.starts - 1, watched.starts)  # each query once
    assert all("not counted, because the disk was full" in line for line in watched.log)


def test_another_failure_counts_whatever_the_disk_is_like():
    watched = Watched(lambda _: 7, disk=Disk(looks=1), error="ValueError: no")
    watched.run()
    assert "split failed 6 times at batch 7: ValueError: no" in watched.reason

"""Which failures of queries end an application; Spark itself fails in tests/spark."""

import threading
from itertools import count
from types import SimpleNamespace

import pytest

from sojourn.spark import supervisor
from sojourn.spark.restarts import Restarts
from sojourn.spark.supervisor import QuerySupervisor


class NoHosts:
    def stopped(self):
        return {}

    def ended(self):
        return {}


class Failed:
    """A query that has ended before anybody looks."""

    isActive = False  # noqa: N815 - as PySpark calls it

    def exception(self):
        return None

    def stop(self):
        pass


class Watched:
    """Queries of which one always fails, every half minute, at the batch that is told."""

    def __init__(self, monkeypatch, batch, broker=lambda: "well"):
        clock_s = count(0, 30)
        monkeypatch.setattr(supervisor, "_LOOK_S", 0.001)
        monkeypatch.setattr(
            supervisor, "time", SimpleNamespace(monotonic=lambda: next(clock_s))
        )
        self.starts, self.reason, self.over = 0, "", threading.Event()
        self._supervisor = QuerySupervisor(
            NoHosts(),
            {},
            {"split": self._start},
            wanted=None,
            batch=batch,
            failed=self._failed,
            broker=broker,
        )

    def run(self):
        """Return when it is over, or it has gone on for long."""
        self._supervisor.start()
        try:
            assert self.over.wait(60)
        finally:
            self._supervisor.stop()

    def _start(self):
        self.starts += 1
        if self.starts > 50:
            self.over.set()
        return Failed()

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


def test_a_batch_that_always_fails_ends_the_application(monkeypatch):
    watched = Watched(monkeypatch, lambda _: 7)
    watched.run()
    assert "split failed 6 times at batch 7" in watched.reason
    assert watched.starts == 6


def test_failures_with_progress_in_between_do_not(monkeypatch):
    watched = Watched(monkeypatch, lambda _: watched.starts // 4)
    watched.run()
    assert not watched.reason


def test_too_many_failures_at_once_end_it_whatever_it_is_at():
    restarts = Restarts()
    delays = [restarts.delay_s(float(n), place=n) for n in range(9)]
    assert delays[-1] is None
    assert None not in delays[:-1]
    assert restarts.why == "failed 9 times in 120 s"


def test_failures_while_brokers_are_shaky_do_not_end_it(monkeypatch):
    """Not even at the same batch: a partition without a leader may take hours."""
    watched = Watched(monkeypatch, lambda _: 7, broker=lambda: "shaky")
    watched.run()
    assert not watched.reason


def test_while_no_broker_answers_nothing_is_started_and_then_it_is(monkeypatch):
    starts = []

    def standing():
        starts.append(watched.starts)
        return "away" if len(starts) <= 20 else "shaky"

    watched = Watched(monkeypatch, lambda _: 7, broker=standing)
    watched.run()
    assert starts[:20] == [1] * 20
    assert watched.starts > 20
    assert not watched.reason

"""A power failure in which Spark lost its last commits: a start resumes from an older cut."""

import pytest

from sojourn.errors import EngineError
from unit.spark.host.word_count import LINES, WordCountHost

WORDS = ["a b", "a", "b c", "a", "c", "a b", "d"]
EXACT = {"a": 4, "b": 3, "c": 2, "d": 1}
KEPT = 3


@pytest.fixture
def start(tmp_path):
    """Return what starts a host in the same folder as those before it."""
    hosts = []

    def started(**settings):
        for host in hosts:
            host.files.close()
        hosts.append(WordCountHost(tmp_path / "part", kept=KEPT, **settings))
        return hosts[-1]

    yield started
    for host in hosts:
        host.files.close()


def batches(host, numbers, *, attempt):
    """Run batches, each with the line of its number."""
    for batch in numbers:
        relay = 100 * attempt + batch
        host.relay_comes(relay, batch=batch, attempt=attempt)
        host.merge()
        host.take(relay, WORDS[: batch + 1][batch:], first=batch)
        host.work_off()
        host.end_batch(relay)
        host.files.drop_before(batch - 1 - KEPT)
        assert host.finished[-1] == relay


def found(host):
    return host.counts(*EXACT), host.ledger.taken


@pytest.mark.parametrize("lost", range(KEPT + 1))
@pytest.mark.parametrize("log", ["whole", "gone"])
def test_a_start_resumes_from_any_of_the_kept_batches(start, tmp_path, lost, log):
    """With the log or without it: that is not synced either."""
    batches(start(), range(6), attempt=1)
    if log == "gone":
        for path in (tmp_path / "part" / "log").iterdir():
            path.unlink()
    host = start()
    batches(host, range(6 - lost, 7), attempt=2)
    assert found(host) == (EXACT, {LINES: 7})
    # and the next start has the same, with nothing of what was lost
    after = start()
    after.relay_comes(1, batch=7, attempt=3)
    assert found(after) == (EXACT, {LINES: 7})
    assert after.files.committed() == 5  # that of the last one is told by Spark alone


def test_a_start_that_spark_lost_more_commits_for_is_refused(start):
    batches(start(), range(7), attempt=1)
    with pytest.raises(EngineError, match=r"no cut of batch 1, .*the oldest is of batch 2; "):
        start().relay_comes(1, batch=2, attempt=2)


def test_a_store_that_is_ahead_of_the_cut_is_refused(start):
    """As when fewer batches were kept for a while."""
    host = start()
    batches(host, range(6), attempt=1)
    host.ledger._kept = 0  # noqa: SLF001 - as a host with other settings does
    host.relay_comes(9, batch=6, attempt=1)
    host.merge()
    with pytest.raises(EngineError, match=r"is at batch 5, but Spark's checkpoint is at"):
        start().relay_comes(1, batch=4, attempt=2)


def test_what_a_kept_cut_names_is_on_disk_and_no_more(start, tmp_path):
    """Cuts, changed states and logs of the kept batches, and nothing older."""
    host, part = start(), tmp_path / "part"
    batches(host, range(7), attempt=1)
    host.relay_comes(900, batch=7, attempt=1)
    host.merge()
    cuts = sorted(path.name for path in (part / "cuts").iterdir())
    assert cuts == ["2-1", "3-1", "4-1", "5-1", "6-1"]  # the last may not be committed
    changed = sorted(path.name for path in (part / "state" / "changed").iterdir())
    assert changed == ["4-1", "5-1", "6-1"]
    assert host.files.state.merged() == 3
    assert len(list((part / "log").iterdir())) == KEPT + 1
    host.files.close()


def test_segments_stay_while_a_kept_cut_names_them(start, tmp_path):
    host, segments = start(spills=True), tmp_path / "part" / "segments"
    host.relay_comes(40, batch=0, attempt=1)
    host.take(40, ["a b c", "a", "b", "c"])
    host.end_batch(40)
    named = {each.name for each in host.files.load(host.files.last(0)).spilled}
    assert named
    for batch in range(1, KEPT + 3):  # all is done in the first of them
        host.relay_comes(40 + batch, batch=batch, attempt=1)
        host.work_off()
        host.end_batch(40 + batch)
        left = named & {path.name for path in segments.iterdir()}
        assert left == (named if batch <= KEPT + 1 else set())


def test_a_relay_of_an_earlier_attempt_does_not_take_a_new_host_back(start):
    batches(start(), range(2), attempt=1)
    batches(start(), range(2, 5), attempt=2)
    host = start()
    host.relay_comes(7, batch=2, attempt=1)
    assert host.refused == {7: "a later attempt or batch than (1, 2) has begun"}

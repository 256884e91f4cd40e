"""What state by key withstands, one case at a time: each has a name, and can be read alone.

`test_part_whatever_happens` looks for others at random.
"""

from itertools import count

import pytest

from sojourn.errors import EngineError
from sojourn.spark.host.batch.cut import CutId
from sojourn.spark.host.batch.host_log import Did
from sojourn.spark.host.desk.events import RelayEnded, RelayLeft
from unit.spark.host.word_count import LINES, WordCountHost


@pytest.fixture
def host_in(tmp_path):
    """Return what starts a host in the same folder as the others, or in one of its own."""
    hosts, folders = [], count()

    def start(*, alone=False, **settings):
        folder = tmp_path / (f"part {next(folders)}" if alone else "part")
        hosts.append(WordCountHost(folder, **settings))
        return hosts[-1]

    yield start
    for host in hosts:
        host.files.close()


def every_order(start, lines):
    """Yield hosts that have done *lines*, one for each order in which processors can end."""
    to_try = [()]
    while to_try:
        chosen = to_try.pop()
        host = start(alone=True)
        host.relay_comes(1, batch=0, attempt=1)
        host.take(1, lines)
        steps = 0
        while host.given:
            able = sorted(host.given)
            if steps == len(chosen):
                to_try += [(*chosen, other) for other in range(1, len(able))]
                chosen = (*chosen, 0)
            host.work(*able[chosen[steps]])
            steps += 1
        yield host
        host.files.close()


# -- keys of records that are taken together ---------------------------------------------------


@pytest.mark.parametrize(("lines", "took_s"), [(["a b", "b a"], 1), (["a b a", "b a b"], 1e-4)])
def test_lines_with_the_same_words_in_opposite_order_do_not_wait_for_each_other(
    host_in, lines, took_s
):
    """Each would hold the key that the other needs, if a line held all its keys at once.

    Of records that take no time, processors are given several.
    """
    words = " ".join(lines).split()
    orders = 0
    for host in every_order(lambda **own: host_in(took_s=took_s, **own), lines):
        assert host.desk.inside == 0
        numbers = [f"{word} {n}" for word in "ab" for n in range(1, words.count(word) + 1)]
        assert sorted(payload for _, payload in host.written) == numbers
        assert host.counts("a", "b") == {word: words.count(word) for word in "ab"}
        orders += 1
    assert orders > 5


@pytest.mark.parametrize(("times", "took_s"), [(2, 1), (6, 1e-4)])
def test_records_of_one_key_in_one_tree_count_each_and_in_order(host_in, times, took_s):
    lines = [" ".join("a" * times), "b"]
    for host in every_order(lambda **own: host_in(took_s=took_s, **own), lines):
        assert [each for each in host.written if each[0].startswith("line 0")] == [
            (f"line 0.split.{n}.count.0", f"a {n + 1}") for n in range(times)
        ]
        assert host.counts("a", "b") == {"a": times, "b": 1}


# -- batches that run again --------------------------------------------------------------------


@pytest.mark.parametrize("host_dies", [False, True])
@pytest.mark.parametrize("cut_is_made", [False, True])
@pytest.mark.parametrize("merges", [False, True])
@pytest.mark.parametrize("end", [1, 3, 5])
def test_a_batch_that_runs_again_to_other_ends_counts_each_record_once(
    host_in, end, merges, cut_is_made, host_dies
):
    """The first time it ends at offset 3; Spark may choose an earlier or a later one."""
    lines = ["a b", "a", "c a", "b", "a c", "d"]
    host = host_in()
    host.relay_comes(1, batch=0, attempt=1)
    host.take(1, lines[:3])
    host.work_off()
    if cut_is_made:
        host.end_batch(1)
    if host_dies:
        host = host_in()
    host.relay_comes(2, batch=0, attempt=2)
    host.take(2, lines[:end])
    host.work_off()
    host.end_batch(2)
    assert host.finished[-1] == 2
    host.relay_comes(3, batch=1, attempt=2)
    if merges:
        host.merge()
    host.take(3, lines[end:], first=end)
    host.work_off()
    host.end_batch(3)
    exact = {"a": 4, "b": 2, "c": 2, "d": 1}
    assert host.counts(*"abcd") == exact
    assert {payload for _, payload in host.written} >= {f"{w} {n}" for w, n in exact.items()}
    after = host_in()
    after.relay_comes(4, batch=2, attempt=3)
    assert (after.counts(*"abcd"), after.ledger.taken) == (exact, {LINES: 6})


@pytest.mark.parametrize("host_dies", [False, True])
@pytest.mark.parametrize(
    "most", [{"most_handed": 2}, {"most_handed_bytes": 7}, {}], ids=["number", "bytes", "all"]
)
def test_more_results_than_memory_holds_are_all_handed_over_again(host_in, most, host_dies):
    """The relay dies with its worker, and Spark has written none, some or all of them."""
    host = host_in(**most)
    host.relay_comes(1, batch=0, attempt=1)
    host.take(1, ["a b", "b a", "a"])
    host.work_off()
    first = host.written
    assert len(first) == 5
    host.decide(RelayLeft(1))
    if host_dies:
        host = host_in(**most)
    host.written = []
    for attempt in (2, 3):
        host.relay_comes(attempt, batch=0, attempt=attempt)
        assert host.written == first
        host.written = []
    host.end_batch(3)
    host.relay_comes(4, batch=1, attempt=3)
    assert host.written == []  # they are committed


# -- records with one id -----------------------------------------------------------------------


@pytest.mark.parametrize("steps", range(9))
@pytest.mark.parametrize("cut_is_made", [False, True])
def test_open_records_with_one_id_survive_the_host(host_in, steps, cut_is_made):
    """A producer that retries, or a mirror, writes an id twice; both records are open at once.

    The host is killed after so many of its processors have answered.
    """
    lines, same = ["a b", "a b", "c"], ["the same", "the same", "another"]
    host = host_in()
    host.relay_comes(1, batch=0, attempt=1)
    host.take(1, lines, names=same)
    if cut_is_made:
        host.end_batch(1)
        host.relay_comes(1, batch=1, attempt=1)
    for _ in range(steps):
        host.work(*min(host.given))
    batch = int(cut_is_made)
    for attempt in (2, 3):
        host = host_in()
        host.relay_comes(attempt, batch=batch, attempt=attempt)
        host.take(attempt, lines, names=same)
    host.work_off()
    assert host.desk.inside == 0
    assert host.counts("a", "b", "c") == {"a": 2, "b": 2, "c": 1}
    assert sorted(payload for _, payload in host.written) == ["a 1", "a 2", "b 1", "b 2", "c 1"]
    host.end_batch(3)
    after = host_in()
    after.relay_comes(4, batch=batch + 1, attempt=4)
    assert (after.desk.inside, after.ledger.taken) == (0, {LINES: 3})


def test_a_log_that_does_not_fit_its_cut_ends_the_start(host_in):
    host = host_in()
    host.relay_comes(1, batch=0, attempt=1)
    host.files.log.append([Did(7)])
    with pytest.raises(EngineError, match="its log closes record 7, which was not open"):
        host_in().relay_comes(2, batch=0, attempt=2)


def test_states_of_a_batch_that_is_not_committed_are_not_merged(host_in):
    """The log might be lost with the machine, and the records would count once more."""
    host = host_in()
    host.relay_comes(1, batch=0, attempt=1)
    host.take(1, ["a"])
    host.work_off()
    host.end_batch(1)
    host.relay_comes(2, batch=1, attempt=1)
    host.merge()
    host.take(2, ["a"], first=1)
    host.work_off()
    host.end_batch(2)
    host.relay_comes(3, batch=1, attempt=2)  # its cut is on disk, and Spark has failed
    host.merge()
    assert (host.stored(), host.counts("a")) == ({"a": 1}, {"a": 2})


# -- what is left of attempts and hosts that are over ------------------------------------------


def test_a_stale_delta_of_a_failed_attempt_is_neither_read_nor_merged(host_in):
    first = host_in()
    first.relay_comes(1, batch=0, attempt=1)
    first.take(1, ["a"])
    first.work_off()
    # it is killed once this is written, and before the cut that names it is
    stale = CutId(0, 1)
    first.files.state.write_delta(stale, {"count": {"a": b"70", "z": b"70"}})
    second = host_in()
    second.relay_comes(2, batch=0, attempt=2)
    second.take(2, ["a", "b"])
    second.work_off()
    second.end_batch(2)
    assert second.counts("a", "b", "z") == {"a": 1, "b": 1, "z": 0}
    third = host_in()  # before anything is merged
    third.relay_comes(3, batch=1, attempt=3)
    assert third.counts("a", "b", "z") == {"a": 1, "b": 1, "z": 0}
    third.merge()
    assert third.counts("a", "b", "z") == {"a": 1, "b": 1, "z": 0}
    assert third.stored() == {"a": 1, "b": 1}
    with pytest.raises(FileNotFoundError):
        third.files.state.read_delta(stale)


def taken_over(host_in):
    """Return a host that was thought dead, and the one that has followed it."""
    old = host_in()
    old.relay_comes(1, batch=0, attempt=1)
    old.take(1, ["a", "b"])
    old.work(*min(old.given))
    new = host_in()
    new.relay_comes(2, batch=0, attempt=2)
    new.take(2, ["a", "b", "a"])
    return old, new


def found_after(new, host_in, *, commits):
    """Return what a third host finds, before the second has committed its batch or after."""
    new.work_off()
    if commits:
        new.end_batch(2)
    third = host_in()
    third.relay_comes(3, batch=int(commits), attempt=3)
    return third.counts("a", "b", "z"), third.ledger.taken, third.desk.inside


EXACT = ({"a": 2, "b": 1, "z": 0}, {LINES: 3}, 0)


@pytest.mark.parametrize("commits", [False, True])
def test_what_a_host_logs_that_was_thought_dead_changes_nothing(host_in, commits):
    old, new = taken_over(host_in)
    old.work_off()  # it does not know yet, and logs the states that it changes
    old.take(1, ["z"], first=2)
    old.work_off()
    assert old.counts("a", "b", "z") == {"a": 1, "b": 1, "z": 1}
    assert found_after(new, host_in, commits=commits) == EXACT


def test_a_host_that_was_thought_dead_ends_with_the_reason_before_it_makes_a_cut(host_in):
    old, new = taken_over(host_in)
    old.work_off()
    with pytest.raises(EngineError, match="another host has taken over its log; this one"):
        old.end_batch(1)
    assert (old.saving, old.finished) == ([], [])
    assert found_after(new, host_in, commits=True) == EXACT


@pytest.mark.parametrize("late", ["before the commit", "after the commit", "after the merge"])
def test_a_cut_that_a_host_writes_late_changes_nothing(host_in, late):
    """It was being written when another host took over, by a thread that got no time."""
    old = host_in()
    old.relay_comes(1, batch=0, attempt=1)
    old.take(1, ["a", "z"])
    old.work_off()
    old.decide(RelayEnded(1))
    ((cut, changed),) = old.saving
    new = host_in()
    new.relay_comes(2, batch=0, attempt=2)
    assert new.counts("a", "z") == {"a": 1, "z": 1}  # all of it was in the log
    new.take(2, ["a", "z", "b"])  # the last is open at the end of the batch
    if late == "before the commit":
        old.files.save(cut, changed)
    new.end_batch(2)
    if late == "after the commit":
        old.files.save(cut, changed)
    new.relay_comes(3, batch=1, attempt=2)
    new.merge()
    if late == "after the merge":
        old.files.save(cut, changed)
    third = host_in()
    third.relay_comes(4, batch=1, attempt=3)
    third.take(4, ["a"], first=3)
    third.work_off()
    assert third.counts("a", "b", "z") == {"a": 2, "b": 1, "z": 1}
    assert third.ledger.taken == {LINES: 4}


def test_states_that_a_host_merges_late_do_not_replace_newer_ones(host_in):
    old = host_in()
    old.relay_comes(1, batch=0, attempt=1)
    old.take(1, ["a"])
    old.work_off()
    old.end_batch(1)
    old.relay_comes(2, batch=1, attempt=1)
    assert len(old.merging) == 1  # its thread gets no time
    new = host_in()
    new.relay_comes(3, batch=1, attempt=2)
    new.merge()
    new.take(3, ["a", "a"], first=1)
    new.work_off()
    new.end_batch(3)
    new.relay_comes(4, batch=2, attempt=2)
    new.merge()
    old.merge()
    assert new.stored() == {"a": 3}
    assert new.files.state.merged() == 1


def test_a_relay_of_a_driver_that_was_thought_dead_is_refused_with_the_reason(host_in):
    host = host_in()
    host.relay_comes(1, batch=0, attempt=2)
    host.take(1, ["a"])
    host.relay_comes(2, batch=0, attempt=1)
    assert host.refused == {2: "a later attempt or batch than (1, 0) has begun"}
    host.take(2, ["z", "z"])
    host.decide(RelayEnded(2))
    assert host.saving == []
    host.work_off()
    assert (host.counts("a", "z"), host.ledger.taken) == ({"a": 1, "z": 0}, {LINES: 1})

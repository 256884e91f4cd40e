"""Results that leave, and leave again: bounded in memory by number and by bytes."""

import pytest

from sojourn.spark.host.batch.host_log import Leaving
from sojourn.spark.host.batch.leaving_results import LeavingResults
from sojourn.spark.wire.record import Record, Root
from sojourn.spark.wire.relay import DeadResult

LINES = ("lines", 0)


def result(number, size=10):
    return Leaving(Root(LINES, number), Record(f"line {number}", b"x" * size))


def left(results, each):
    for leaving in each:
        results.add(leaving)
    return results.hand_over()


@pytest.mark.parametrize(("most", "most_bytes"), [(4, 1000), (1000, 40)])
def test_what_is_kept_is_bounded_and_the_rest_comes_from_the_log(most, most_bytes):
    results, log, kept = LeavingResults(most, most_bytes), [], []
    for number in range(9):
        log += left(results, [result(number)])
        kept.append(results.kept_bytes)
    assert max(kept) == 40
    assert kept[-1] == 0
    results.add(result(9))  # it waits, and is logged
    log.append(result(9))
    read = []
    results.again(lambda: (read.append(entry) or [entry] for entry in log))
    assert (results.in_log, bool(results), read) == (True, True, [])
    results.committed()
    results.add(result(10))  # what is new waits behind
    again = results.hand_over()
    assert again == [result(0)]
    assert len(read) == 1  # no more than leaves
    while results:
        again += results.hand_over()
    assert again == [result(number) for number in range(11)]


def test_what_leaves_for_the_third_time_is_all_of_it():
    """A batch may fail while results of the last attempt still come from the log."""
    results, log = LeavingResults(4, 1000), [result(number) for number in range(9)]
    left(results, [result(number) for number in range(9)])
    for _ in range(2):
        results.again(lambda: [log])
        results.committed()
        assert results.hand_over() == [result(0)]
    rest = []
    while results:
        rest += results.hand_over()
    assert rest == [result(number) for number in range(1, 9)]
    results.clear()
    results.again(list)
    assert results.hand_over() == []


def test_of_a_dead_letter_all_counts():
    record = Record("line 0", b"xx", key="k", message_key=b"key", others=(("name", b"value"),))
    assert record.size_bytes == 2 + 1 + 3 + 4 + 5
    letter = DeadResult("parse", record, "no", "here", 1)
    assert Leaving(Root(LINES, 0), None, letter).size_bytes == 15 + 2 + 4
    assert Record("line 0", b"xx", blobs={"image": b"12345"}).size_bytes == 7

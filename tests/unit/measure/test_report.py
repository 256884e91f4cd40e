from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sojourn.measure.aggregate import aggregate
from sojourn.measure.counters import one_each
from sojourn.measure.report import RootReport
from sojourn.measure.sketch import Sketch
from unit.measure.pulls import CHAIN, merged, operator, processor, pull, root_report

_times = st.lists(st.floats(1e-4, 1), min_size=1, max_size=8).map(tuple)
_counts = st.lists(st.integers(0, 50), min_size=40, max_size=40)


@given(
    times=st.lists(_times, min_size=4, max_size=4),
    split=_counts,
    count=_counts,
    completions=st.lists(_times, min_size=2, max_size=2),
)
def test_merging_the_reports_of_two_pulls_equals_pulling_once(times, split, count, completions):
    def piece(part, first_bin, last_bin, since_s, at_s):
        at = slice(first_bin, last_bin)
        work = times[2 * part : 2 * part + 2] if part is not None else None
        p0, p1 = work or (times[0] + times[2], times[1] + times[3])
        done = completions[part] if part is not None else completions[0] + completions[1]
        return pull(
            *(
                operator(
                    name,
                    arrivals=counts[at],
                    bin_s=0.5,
                    processors=(processor("p0", p0), processor("p1", p1)),
                )
                for name, counts in (("split", split), ("count", count))
            ),
            since_s=since_s,
            at_s=at_s,
            roots=root_report(entered=len(done), times_s=done, streams={"in": len(done)}),
        )

    first, later = piece(0, 0, 20, 0.0, 10.0), piece(1, 20, 40, 10.0, 20.0)
    whole = aggregate(merged(first, later), CHAIN, every_s=20)
    once = aggregate(piece(None, 0, 40, 0.0, 20.0), CHAIN, every_s=20)
    assert whole.usable, whole.reason
    assert (whole.since_s, whole.at_s) == (once.since_s, once.at_s)
    assert whole.arrivals_per_s == once.arrivals_per_s
    assert whole.streams == once.streams
    assert whole.mean_s == pytest.approx(once.mean_s)
    assert whole.percentile_s(0.9) == once.percentile_s(0.9)
    for name, one in once.operators.items():
        two = whole.operators[name]
        assert two.arrivals_per_s == one.arrivals_per_s
        assert two.served == one.served
        assert two.arrival_scv == one.arrival_scv
        assert two.longest_service_s == one.longest_service_s == max(sum(times, ()))
        assert two.service_s == pytest.approx(one.service_s)
        assert two.service_scv == pytest.approx(one.service_scv, abs=1e-9)
        assert two.wait_s == pytest.approx(one.wait_s)


def test_a_processor_that_left_or_came_counts_in_a_merged_report():
    first = operator(processors=(processor("old"), processor("stays")))
    later = operator(processors=(processor("stays"), processor("new")))
    served = {p.processor: p.served for p in (first + later).processors}
    assert served == {"old": 50, "stays": 100, "new": 50}


def test_streams_told_apart_in_one_report_only_are_not_in_the_merged_one():
    merged = root_report(streams={"in": 100}) + root_report()
    assert merged.streams == {}


def test_cpu_seconds_are_added_and_memory_is_what_it_is_now():
    merged = processor(cpu_s=1.0, memory_bytes=100) + processor(cpu_s=1.5, memory_bytes=80)
    assert (merged.cpu_s, merged.memory_bytes) == (2.5, 80)


def test_bytes_of_each_stream_are_merged_too():
    merged = operator(bytes={"lines": 5, "words": 1}) + operator(bytes={"lines": 7})
    assert merged.bytes == {"lines": 12, "words": 1}


def test_a_report_that_comes_twice_counts_once_and_the_fuller_one():
    full, half = processor(), processor(times_s=(0.1,) * 25)
    assert one_each([half, full, half]) == {"p0": full}


def test_roots_that_nobody_traced_have_no_times():
    roots = RootReport(entered=5, completed=5)
    assert roots.completions.number == roots.sums.number == 0
    assert replace(roots, sums=Sketch.of([1.0])).sums.mean_s == 1

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sojourn.errors import BadInput
from sojourn.measure.aggregate import aggregate
from sojourn.measure.report import Pull, RootReport, one_each
from sojourn.measure.sketch import Sketch
from unit.measure.pulls import CHAIN, operator, processor, pull, root_report

_times = st.lists(st.floats(1e-4, 1), min_size=1, max_size=8).map(tuple)
_counts = st.lists(st.integers(0, 50), min_size=40, max_size=40)


@given(
    times=st.lists(_times, min_size=4, max_size=4),
    split=_counts,
    count=_counts,
    completions=st.lists(_times, min_size=2, max_size=2),
)
def test_merging_two_pulls_equals_pulling_once(times, split, count, completions):
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

    merged = aggregate(
        piece(0, 0, 20, 0.0, 10.0) + piece(1, 20, 40, 10.0, 20.0), CHAIN, every_s=20
    )
    once = aggregate(piece(None, 0, 40, 0.0, 20.0), CHAIN, every_s=20)
    assert merged.usable, merged.reason
    assert (merged.since_s, merged.at_s) == (once.since_s, once.at_s)
    assert merged.arrivals_per_s == once.arrivals_per_s
    assert merged.streams == once.streams
    assert merged.mean_s == pytest.approx(once.mean_s)
    assert merged.percentile_s(0.9) == once.percentile_s(0.9)
    for name, one in once.operators.items():
        two = merged.operators[name]
        assert two.arrivals_per_s == one.arrivals_per_s
        assert two.served == one.served
        assert two.arrival_scv == one.arrival_scv
        assert two.service_s == pytest.approx(one.service_s)
        assert two.service_scv == pytest.approx(one.service_scv, abs=1e-9)
        assert two.wait_s == pytest.approx(one.wait_s)


def test_a_processor_that_left_or_came_counts_in_a_merged_pull():
    first = pull(operator(processors=(processor("old"), processor("stays"))), at_s=10)
    later = pull(
        operator(processors=(processor("stays"), processor("new"))), since_s=10, at_s=20
    )
    merged = first + later
    served = {p.processor: p.served for p in merged.operators[0].processors}
    assert served == {"old": 50, "stays": 100, "new": 50}


def test_streams_told_apart_in_one_pull_only_are_not_in_the_merged_one():
    merged = root_report(streams={"in": 100}) + root_report()
    assert merged.streams == {}


def test_pulls_that_do_not_follow_each_other_do_not_merge():
    with pytest.raises(BadInput, match="are not consecutive"):
        pull(at_s=10) + pull(since_s=30, at_s=40)


def test_pulls_of_different_operators_do_not_merge():
    later = pull(since_s=10, at_s=20)
    with pytest.raises(BadInput, match="only one of the pulls reports count"):
        pull() + Pull(since_s=10, at_s=20, operators=later.operators[:1], roots=later.roots)


@pytest.mark.parametrize(
    ("first", "later"),
    [
        (operator(arrivals=(1,) * 4, bin_s=3.0), operator(arrivals=(1,) * 4, bin_s=3.0)),
        (operator(), operator(arrivals=(1,) * 5, bin_s=2.0)),
    ],
    ids=["cut short", "of another width"],
)
def test_bins_that_cannot_be_put_together_are_refused(first, later):
    with pytest.raises(BadInput, match=r"split: .* pull at the ends of bins"):
        pull(first) + pull(later, since_s=10, at_s=20)


def test_counters_that_run_on_are_told_apart_by_the_last_ones():
    before, after = processor(times_s=(0.1,) * 3), processor(times_s=(0.1,) * 3 + (0.4,))
    new = after.since(before)
    assert (new.served, new.sampled) == (1, 1)
    assert (new.service_s, new.service_ss) == pytest.approx((0.4, 0.16))


def test_counters_that_restart_from_0_count_from_there():
    """A processor that died and came back has counted less than before it did."""
    before, after = processor(times_s=(0.1,) * 90), processor(times_s=(0.2,) * 5)
    assert after.since(before) == after


def test_cpu_seconds_run_on_and_memory_is_what_it_is_now():
    before = processor(cpu_s=1.0, memory_bytes=100)
    after = processor(cpu_s=1.5, memory_bytes=80)
    assert (after.since(before).cpu_s, after.since(before).memory_bytes) == (0.5, 80)
    assert before.since(after) == before
    assert ((before + after).cpu_s, (before + after).memory_bytes) == (2.5, 80)


def test_bytes_of_each_stream_and_the_machine_are_merged_too():
    first = pull(operator(bytes={"lines": 5, "words": 1}), cores=2, busy_cores=1.0)
    later = pull(operator(bytes={"lines": 7}), since_s=10, at_s=20, cores=4, busy_cores=2.0)
    merged = first + later
    assert merged.operators[0].bytes == {"lines": 12, "words": 1}
    assert (merged.cores, merged.busy_cores) == (4, 1.5)


def test_a_machine_that_one_pull_tells_of_is_as_that_one_says():
    told, silent = {"cores": 2, "busy_cores": 1.0}, {}
    for first, later in ((told, silent), (silent, told)):
        merged = pull(**first) + pull(since_s=10, at_s=20, **later)
        assert (merged.cores, merged.busy_cores) == (2, 1.0)
    assert (pull() + pull(since_s=10, at_s=20)).busy_cores is None


def test_a_report_that_comes_twice_counts_once_and_the_fuller_one():
    full, half = processor(), processor(times_s=(0.1,) * 25)
    assert one_each([half, full, half]) == {"p0": full}


def test_roots_that_nobody_traced_have_no_times():
    roots = RootReport(entered=5, completed=5)
    assert roots.completions.number == roots.sums.number == 0
    assert replace(roots, sums=Sketch.of([1.0])).sums.mean_s == 1

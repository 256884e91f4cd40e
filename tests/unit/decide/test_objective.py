import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from sojourn.decide.objective import Objective, Slice, few_roots, joined, least_roots
from sojourn.decide.target import Target
from sojourn.errors import BadTarget
from sojourn.topology import Arrival, Operator, Topology

P95 = Objective(target=Target("p95", 3.5))
counts = st.lists(st.integers(0, 300), max_size=30)


def slices(born):
    return [Slice(60 * n, 60 * (n + 1), number, number) for n, number in enumerate(born)]


def missed(roots, late):
    """Return the probability that chance alone makes a slice miss p95."""
    return binom.sf(roots // 20, roots, late)


@pytest.mark.parametrize("kept", [0.95, 0.99, 0.995, 0.999])
@pytest.mark.parametrize("late", [0.001, 0.01, 0.02, 0.03, 0.04])
def test_with_the_fewest_roots_or_more_chance_does_not_break_an_objective(kept, late):
    objective = Objective(target=P95.target, kept=kept)
    least = least_roots(objective, late)
    assert max(missed(roots, late) for roots in range(least, 4 * least)) <= 1 - kept
    assert least == 20 or missed(least - 1, late) > 1 - kept


def test_a_target_that_is_missed_without_waiting_is_missed_with_any_number_of_roots():
    assert least_roots(P95, 0.05) == least_roots(P95, 1.0) == 20
    assert least_roots(P95, 0.0499999) <= 200_000
    assert least_roots(Objective(target=Target("p99", 1.0)), 0.0) == 100


def test_a_mean_is_judged_with_any_number_of_roots():
    mean = Objective(target=Target("mean", 2.0))
    assert least_roots(mean, 0.5) == 1
    assert mean.keeps(Slice(0, 60, born=3, sum_s=6.0))
    assert not mean.keeps(Slice(0, 60, born=3, sum_s=6.1))


@pytest.mark.parametrize(
    ("in_time", "kept"), [(100, True), (95, True), (94, False), (0, False)]
)
def test_a_slice_keeps_a_percentile_if_that_part_is_in_time(in_time, kept):
    assert P95.keeps(Slice(0, 60, born=100, in_time=in_time)) is kept


@given(counts, st.integers(1, 200))
def test_joined_slices_follow_each_other_and_have_enough_roots(born, least):
    made = list(joined(slices(born), least))
    assert all(each.born >= least for each in made)
    ends = [0, *(each.until_s for each in made)]
    assert [each.since_s for each in made] == ends[:-1]
    left_out = born[ends[-1] // 60 :]
    assert sum(left_out) < least
    assert sum(each.born for each in made) + sum(left_out) == sum(born)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"slice_s": 0}, "0 s is not a time slice; write more than 0"),
        ({"slice_s": float("nan")}, "nan s is not a time slice"),
        ({"slice_s": 1.0}, r"need a look every 0\.05 s, .* p95 ≤ 3\.5 s; write 2s or more"),
        ({"kept": 1.0}, "no number of processors keeps a target in 100% of all time slices"),
        ({"kept": 0.0}, "in 0% of all"),
        ({"kept": float("nan")}, "in nan% of all"),
    ],
)
def test_an_impossible_objective_is_refused(fields, said):
    with pytest.raises(BadTarget, match=said):
        Objective(target=P95.target, **fields)


@pytest.mark.parametrize(
    ("statistic", "slice_s", "every_s"),
    [
        ("p95", 60, 3.0),
        ("p99", 60, 0.6),
        ("p50", 60, 10.0),
        ("mean", 60, 3.0),
        ("p95", 1e4, 10.0),
    ],
)
def test_looks_are_as_long_as_the_late_part_of_a_slice(statistic, slice_s, every_s):
    objective = Objective(target=Target(statistic, 3.5), slice_s=slice_s)
    assert objective.every_s == every_s
    assert objective.too_seldom(every_s) == ""
    assert f"write --every {every_s:g}s" in objective.too_seldom(1.01 * every_s)


def video(per_s):
    operator = Operator(name="match", service_s=1.1)
    arrival = Arrival(name="frames", per_s=per_s, into="match")
    return Topology(name="video", arrivals=(arrival,), operators=(operator,))


def test_slices_with_too_few_roots_are_told_with_what_makes_them_so():
    few = few_roots(P95, video(1.0))
    assert few == (
        "slices of 60 s have about 60 roots, but to keep 99% they need 3240, because 4.15% "
        "miss p95 ≤ 3.5 s without any waiting; about 54 slices are judged as one"
    )
    assert few_roots(P95, video(60.0)) == ""


@pytest.mark.parametrize(
    ("pause_s", "kept", "every_s"), [(3.0, 0.99, 0.0), (3.1, 0.99, 6000.0), (5, 0.995, 12000.0)]
)
def test_changes_with_long_pauses_are_as_rare_as_misses_may_be(pause_s, kept, every_s):
    objective = Objective(target=P95.target, kept=kept)
    assert objective.change_every_s(pause_s) == pytest.approx(every_s)
    assert (f"once in {every_s:.0f} s" in objective.pause_note(pause_s)) == (every_s > 0)

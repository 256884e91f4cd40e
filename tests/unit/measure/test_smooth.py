from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sojourn.measure.aggregate import aggregate
from sojourn.measure.observation import Moments, Observation, ObservedNode
from sojourn.measure.sketch import Sketch
from sojourn.measure.smooth import Window
from unit.measure.pulls import CHAIN, merged, operator, processor, pull, root_report

ZIGZAG = (10, 14) * 20


def seen(at_s=10.0, *, arrivals=10, times_s=(0.1, 0.3) * 20, running=2, lasted_s=10, **roots):
    """Return the observation of an interval in which *arrivals* came per bin of 0.25 s."""
    made = pull(
        *(
            operator(
                name,
                arrivals=np.full(4 * lasted_s, arrivals)
                if np.ndim(arrivals) == 0
                else arrivals,
                bin_s=0.25,
                processors=tuple(processor(f"p{i}", times_s) for i in range(running)),
                backlog=running,
            )
            for name in ("split", "count")
        ),
        since_s=at_s - lasted_s,
        at_s=at_s,
        roots=root_report(**roots),
    )
    made = aggregate(made, CHAIN, every_s=lasted_s)
    assert made.usable, made.reason
    return made


BROKEN = Observation.unusable(10.0, 20.0, "split: served of p0 is nan")
smoothers = st.integers(1, 20).map(Window)


@given(smoother=smoothers, number=st.integers(1, 12))
def test_smoothing_of_a_constant_is_the_constant(smoother, number):
    once = seen(arrivals=ZIGZAG, streams={"in": 100})
    smooth = smoother([once] * number)
    assert smooth.arrivals_per_s == pytest.approx(once.arrivals_per_s)
    assert smooth.completed_per_s == pytest.approx(once.completed_per_s)
    assert smooth.streams == pytest.approx(once.streams)
    assert smooth.mean_s == pytest.approx(once.mean_s)
    assert smooth.percentile_s(0.95) == once.percentile_s(0.95)
    for name, expected in once.operators.items():
        got = smooth.operators[name]
        assert (got.running, got.wanted, got.backlog) == (2, 2, 2)
        for number_of in (
            "arrivals_per_s",
            "served_per_s",
            "service_s",
            "service_scv",
            "arrival_scv",
            "wait_s",
            "sojourn_s",
            "utilisation",
        ):
            assert getattr(got, number_of) == pytest.approx(getattr(expected, number_of))


@given(size=st.integers(1, 10), rates=st.lists(st.integers(5, 100), min_size=1, max_size=8))
def test_a_window_is_the_mean_of_the_last_few(size, rates):
    history = [seen(10.0 * (i + 1), arrivals=rate) for i, rate in enumerate(rates)]
    smooth = Window(size)(history)
    assert smooth.operators["split"].arrivals_per_s == pytest.approx(4 * np.mean(rates[-size:]))
    assert smooth.since_s == history[-size:][0].since_s


def test_rates_count_by_the_time_they_were_counted_in():
    smooth = Window(2)([seen(10, arrivals=10), seen(40, arrivals=20, lasted_s=30)])
    assert smooth.operators["split"].arrivals_per_s == pytest.approx((40 * 10 + 80 * 30) / 40)


def test_times_count_by_their_samples():
    few, many = seen(10, times_s=(0.5,) * 2), seen(20, times_s=(0.1,) * 200)
    split = Window(2)([few, many]).operators["split"]
    assert split.samples == 404
    assert split.service_s == pytest.approx((0.5 * 2 + 0.1 * 200) / 202)
    assert split.service_scv == pytest.approx(
        np.var([0.5] * 2 + [0.1] * 200) / np.mean([0.5] * 2 + [0.1] * 200) ** 2
    )


def test_an_interval_without_samples_keeps_the_times_of_those_before():
    smooth = Window(2)([seen(10), seen(20, times_s=())])
    assert smooth.operators["split"].service_s == pytest.approx(0.2)
    assert smooth.operators["split"].samples == pytest.approx(80)


def test_a_window_of_pulls_is_the_pull_of_the_window():
    """But for dispersion, where a rate that changed between intervals is no burst."""
    first, later = (
        pull(
            operator(processors=(processor("p0", times), processor("p1", (0.1,)))),
            since_s=since_s,
            at_s=since_s + 10,
        )
        for since_s, times in ((0.0, (0.1, 0.2, 0.3)), (10.0, (0.4,) * 9))
    )
    apart = Window(2)([aggregate(p, CHAIN, every_s=10) for p in (first, later)])
    once = aggregate(merged(first, later), CHAIN, every_s=20)
    one, two = once.operators["split"], apart.operators["split"]
    assert two.arrivals_per_s == pytest.approx(one.arrivals_per_s)
    assert two.service_s == pytest.approx(one.service_s)
    assert two.service_scv == pytest.approx(one.service_scv)
    assert two.served == one.served
    assert apart.completions.counts.tolist() == once.completions.counts.tolist()


def test_dispersions_count_by_their_bins():
    calm, none = seen(10, arrivals=(20,) * 40), seen(30, arrivals=1)
    wild = seen(20, arrivals=(10, 30) * 28, lasted_s=14)
    split = Window(3)([calm, wild, none]).operators["split"]
    wild_scv = wild.operators["split"].arrival_scv
    assert wild_scv == pytest.approx(5.1, rel=0.01)
    assert split.arrival_scv == pytest.approx(55 * wild_scv / (39 + 55))
    assert split.bins == 39 + 55 + 1
    assert Window(1)([none]).operators["split"].arrival_scv is None


# --- what is skipped ---


@given(smoother=smoothers, where=st.integers(0, 3))
def test_unusable_observations_do_not_enter_the_average(smoother, where):
    history = [seen(10.0 * (i + 1), arrivals=5 + i) for i in range(4)]
    broken = [*history[:where], BROKEN, *history[where:]]
    one, two = smoother(history), smoother(broken)
    assert (one.operators, one.arrivals_per_s) == (two.operators, two.arrivals_per_s)
    assert two.usable


def test_after_an_unusable_observation_the_average_says_so():
    """What was known is still there to look at, but nothing should be decided on it."""
    smooth = Window(3)([seen(), BROKEN])
    assert (smooth.usable, smooth.reason) == (False, BROKEN.reason)
    assert smooth.operators == seen().operators


def test_where_nothing_is_usable_the_last_observation_comes_back():
    assert Window(3)([BROKEN]) is BROKEN


def test_observations_of_another_topology_do_not_enter_the_average():
    old = seen(arrivals=50)
    old = replace(old, operators={"split": old.operators["split"]})
    assert Window(5)([old, seen(20)]).operators["split"].arrivals_per_s == 40


def test_streams_that_were_not_told_apart_before_are_averaged_from_then_on():
    smooth = Window(5)([seen(), seen(20, streams={"in": 100}), seen(30, streams={"in": 100})])
    assert smooth.streams == {"in": 10}


# --- what depends on the allocation ---


def test_waits_from_before_the_allocation_changed_do_not_count():
    """The wait with two processors says nothing of the wait with three; a service time does."""
    before = [seen(10.0 * i, times_s=(0.9,) * 40) for i in (1, 2)]
    after = seen(30, running=3, times_s=(0.3,) * 40)
    split = Window(9)([*before, after]).operators["split"]
    assert (split.running, split.backlog) == (3, 3)
    assert split.wait_s == pytest.approx(0.3)
    assert split.utilisation == after.operators["split"].utilisation
    assert split.service_s == pytest.approx((2 * 80 * 0.9 + 120 * 0.3) / 280)


def test_completions_from_before_the_allocation_changed_do_not_count():
    history = [
        seen(10, running=2, entered=100),
        replace(seen(20, running=3), sums=Sketch.of([0.25] * 100)),
        replace(seen(30, running=3), sums=Sketch.of([0.75] * 300)),
    ]
    assert Window(9)(history).mean_s == pytest.approx(0.625)


# --- sketches ---


@given(
    times=st.lists(st.lists(st.floats(0.01, 10), max_size=30), min_size=1, max_size=5),
    ratio=st.floats(0.05, 0.95),
)
def test_percentiles_are_those_of_all_roots(times, ratio):
    history = [
        replace(seen(10.0 * (i + 1)), completions=Sketch.of(some))
        for i, some in enumerate(times)
    ]
    every = [one for some in times for one in some]
    smooth = Window(len(times))(history)
    assert smooth.completions.number == len(every)
    if every:
        assert smooth.percentile_s(ratio) == Sketch.of(every).percentile_s(ratio)


def test_no_completions_have_no_percentile():
    quiet = replace(seen(), completions=Sketch.empty())
    assert np.isnan(Window(2)([quiet, quiet]).percentile_s(0.5))


# --- settings ---


def test_smoothing_narrows_the_noise():
    """A window of nine has a third of the standard error of one."""
    rng = np.random.default_rng(2)
    errors = []
    for _ in range(60):
        history = [seen(10.0 * (i + 1), arrivals=rng.poisson(25, 40)) for i in range(9)]
        errors.append(
            [
                smoother(history).operators["split"].arrivals_per_s - 100
                for smoother in (Window(1), Window(9))
            ]
        )
    one, nine = np.std(errors, axis=0)
    assert one == pytest.approx(np.sqrt(1000) / 10, rel=0.25)
    assert nine / one == pytest.approx(1 / 3, rel=0.25)


def computed(at_s, *, cpu_s, served=40, busy_cores=None, cores=2.0, bytes_per_s=None):
    once = seen(at_s)
    split = replace(
        once.operators["split"],
        cpu_s=cpu_s,
        served=served,
        memory_bytes=round(at_s),
        bytes_per_s=bytes_per_s or {},
    )
    operators = {**once.operators, "split": split}
    return replace(once, operators=operators, cores=cores, busy_cores=busy_cores)


def test_cpu_seconds_count_by_the_records_served():
    history = [computed(10, cpu_s=0.1, served=30), computed(20, cpu_s=0.2, served=10)]
    smooth = Window(5)([*history, computed(30, cpu_s=None, served=900)])
    assert smooth.operators["split"].cpu_s == pytest.approx(0.125)
    assert smooth.operators["count"].cpu_s is None


def test_cores_and_memory_are_the_last_and_busy_cores_the_mean():
    history = [
        computed(10, cpu_s=0.1, busy_cores=1.0),
        computed(20, cpu_s=0.1, busy_cores=None),
        computed(30, cpu_s=0.1, busy_cores=2.0, cores=4.0),
    ]
    smooth = Window(5)(history)
    assert (smooth.cores, smooth.busy_cores) == (4.0, 1.5)
    assert smooth.operators["split"].memory_bytes == 30
    assert Window(5)(history[1:2]).busy_cores is None


def test_bytes_of_a_stream_are_averaged_from_when_it_was_told_on():
    history = [
        computed(10, cpu_s=0.1),
        computed(20, cpu_s=0.1, bytes_per_s={"lines": 10.0}),
        computed(30, cpu_s=0.1, bytes_per_s={"lines": 30.0}),
    ]
    assert Window(5)(history).operators["split"].bytes_per_s == {"lines": 20.0}


def test_a_way_is_as_long_as_it_mostly_was():
    """Records that waited for something else once do not make it longer for long."""
    ways = [Moments(30, 30 * s, 30 * s * s) for s in (0.005, 0.006, 2.5, 0.004)]
    once = [computed(10.0 * n, cpu_s=0.1) for n in range(1, 6)]
    history = [
        replace(o, operators={"split": replace(o.operators["split"], transfer=way)})
        for o, way in zip(once, [*ways, Moments()], strict=True)
    ]
    transfer = Window(5)(history).operators["split"].transfer
    assert (transfer.number, transfer.mean_s) == (120, pytest.approx(0.005))
    assert Window(1)(history).operators["split"].transfer == Moments()


def test_what_is_used_of_a_node_is_averaged_and_its_cores_are_the_last():
    def look(at_s, **nodes):
        return replace(seen(at_s), nodes=nodes)

    history = [
        look(10, one=ObservedNode(cores=2.0, busy_cores=1.0, computing={"split": 0.5})),
        look(20, one=ObservedNode(cores=2.0), two=ObservedNode(cores=2.0, busy_cores=0.2)),
        look(
            30,
            one=ObservedNode(
                cores=4.0, busy_cores=2.0, computing={"split": 1.5}, running={"split": 3}
            ),
            two=ObservedNode(cores=2.0),
        ),
    ]
    nodes = Window(5)(history).nodes
    assert nodes == {
        "one": ObservedNode(
            cores=4.0, busy_cores=1.5, computing={"split": 1.0}, running={"split": 3}
        ),
        "two": ObservedNode(cores=2.0, busy_cores=0.2),
    }
    assert Window(5)(history[:1]).nodes == history[0].nodes
    assert Window(5)([look(10, one=ObservedNode(cores=2.0))]).nodes["one"].busy_cores is None

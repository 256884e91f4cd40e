from dataclasses import replace
from math import inf, nan, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sojourn.measure.aggregate import LEAST_BINS, LEAST_PER_BIN, aggregate, dispersion
from sojourn.measure.counters import OperatorReport, ProcessorReport
from sojourn.measure.observation import ObservedNode
from sojourn.measure.report import NodeReport, Pull, RootReport
from sojourn.measure.sketch import Sketch
from sojourn.text import shown
from unit.measure.pulls import CHAIN, operator, processor, pull, root_report

HUGE = [1e19, 1e300, 10**400]
WRONG = [nan, inf, -inf, -1, *HUGE, None, "12", True]


def observe(*operators, every_s=10, last_s=None, topology=CHAIN, **fields):
    return aggregate(pull(*operators, **fields), topology, every_s=every_s, last_s=last_s)


def machine(**cores):
    return aggregate(pull(**cores), CHAIN, every_s=10)


def test_a_sound_pull_says_what_happened():
    seen = observe(
        operator(
            processors=(
                processor("p0", (0.1, 0.3), waits_s=(0.0, 0.4)),
                processor("p1", (0.2,)),
            ),
            backlog=7,
            wanted=3,
        ),
        roots=root_report(entered=120, times_s=range(1, 101), streams={"in": 120}),
    )
    assert (seen.usable, seen.reason, seen.notes) == (True, "", ())
    assert (seen.arrivals_per_s, seen.completed_per_s, seen.streams) == (12, 10, {"in": 12})
    assert (seen.mean_s, seen.lasted_s) == (50.5, 10)
    assert seen.percentile_s(0.95) == pytest.approx(95, rel=0.004)
    split = seen.operators["split"]
    assert (split.wanted, split.running, split.backlog, split.samples) == (3, 2, 7, 3)
    assert split.arrivals_per_s == 10
    assert split.service_s == pytest.approx(0.2)
    assert split.service_scv == pytest.approx(np.var([0.1, 0.2, 0.3]) / 0.04)
    assert split.wait_s == pytest.approx(0.2)
    assert split.sojourn_s == pytest.approx(0.4)
    assert split.utilisation == pytest.approx(3 * 0.2 / (2 * 10))


def test_served_records_count_whether_they_were_timed_or_not():
    """One record in N_m is timed; how busy a processor is follows from all of them."""
    split = observe(operator(processors=(processor("p0", (0.1,) * 5, served=50),))).operators[
        "split"
    ]
    assert (split.samples, split.served, split.served_per_s) == (5, 50, 5)
    assert split.utilisation == pytest.approx(0.5)


def test_operators_come_in_the_order_of_the_topology():
    made = pull()
    turned = Pull(since_s=0, at_s=10, operators=made.operators[::-1], roots=made.roots)
    assert list(aggregate(turned, CHAIN, every_s=10).operators) == ["split", "count"]


# --- the clock ---


@pytest.mark.parametrize(("since_s", "at_s"), [(10.0, 10.0), (10.0, 3.0), (0.0, 1e-12)])
def test_a_clock_that_stood_still_or_went_back_is_no_interval(since_s, at_s):
    seen = observe(since_s=since_s, at_s=at_s)
    assert not seen.usable
    assert f"from {since_s} s to {at_s} s" in seen.reason


def test_a_clock_that_jumped_back_between_pulls_is_noticed():
    seen = observe(since_s=100, at_s=110, last_s=130.0)
    assert not seen.usable
    assert "jumped back from 130.0 s to 100 s" in seen.reason
    assert observe(since_s=100, at_s=110, last_s=100.0).usable


def test_a_clock_that_jumped_within_the_interval_does_not_agree_with_the_bins():
    """Ten bins of a second were counted, but the clock says that four seconds passed."""
    seen = observe(operator(), at_s=4.0)
    assert not seen.usable
    assert seen.reason == "split: 10 bins of 1 s do not cover the interval of 4 s"


def test_an_interval_far_longer_than_asked_is_not_used():
    assert observe(at_s=30).usable
    seen = observe(at_s=31)
    assert not seen.usable
    assert "lasted 31 s instead of 10 s" in seen.reason


@pytest.mark.parametrize("wrong", [nan, inf, -inf, 10**400, None, "now"])
@pytest.mark.parametrize("which", ["since_s", "at_s"])
def test_a_time_that_is_none_is_not_used(which, wrong):
    made = pull()
    times = {"since_s": 0.0, "at_s": 10.0} | {which: wrong}
    seen = aggregate(
        Pull(operators=made.operators, roots=made.roots, **times), CHAIN, every_s=10
    )
    assert not seen.usable
    assert f"the clock: {which} is" in seen.reason


# --- numbers that cannot be ---


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize(
    "counter",
    [
        "served", "sampled", "service_s", "service_ss", "wait_s", "wait_ss", "cpu_s",
        "longest_service_s", "memory_bytes",
    ],
)  # fmt: skip
def test_a_counter_that_cannot_be_names_operator_and_value(counter, wrong):
    if counter.endswith("ss") and wrong == 1e19:
        wrong = 1e37
    spoilt = replace(processor("p1"), **{counter: wrong})
    seen = observe(operator(processors=(processor("p0"), spoilt)))
    assert not seen.usable
    assert seen.reason.startswith(f"split: {counter} of p1 is {shown(wrong)}")
    assert seen.operators == {}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("field", ["wanted", "running", "backlog", "counted_ratio", "bin_s"])
def test_a_number_of_an_operator_that_cannot_be_names_it(field, wrong):
    seen = observe(replace(operator(), **{field: wrong}))
    assert not seen.usable
    assert seen.reason.startswith(f"split: {field} is ")


@pytest.mark.parametrize("wrong", [0, *(w for w in WRONG if w is not None)], ids=shown)
def test_cores_that_cannot_be_are_named(wrong):
    assert machine(cores=wrong).reason == f"the machine: cores is {shown(wrong)}"


@pytest.mark.parametrize("wrong", [w for w in WRONG if w is not None], ids=shown)
def test_busy_cores_that_cannot_be_are_named(wrong):
    seen = machine(cores=2, busy_cores=wrong)
    assert seen.reason == f"the machine: busy_cores is {shown(wrong)}"


@pytest.mark.parametrize("wrong", WRONG, ids=shown)
def test_bytes_that_cannot_be_name_operator_and_stream(wrong):
    seen = observe(operator(bytes={"words": 10, "lines": wrong}))
    assert seen.reason == f"split: {shown(wrong)} bytes in lines"


@pytest.mark.parametrize("value", [0, 1e-300])
@pytest.mark.parametrize("field", ["counted_ratio", "bin_s"])
def test_a_ratio_or_a_width_of_nothing_is_none(field, value):
    assert observe(replace(operator(), **{field: value})).reason == f"split: {field} is {value}"


@pytest.mark.parametrize("wrong", WRONG)
def test_a_count_in_a_bin_that_cannot_be_is_not_used(wrong):
    seen = observe(operator(arrivals=[10] * 9 + [wrong]))
    assert not seen.usable
    assert seen.reason.endswith("arrivals in a bin")


def test_more_samples_than_records_cannot_be():
    seen = observe(operator(processors=(processor("p0", (0.1,) * 5, served=4),)))
    assert seen.reason == "split: p0 sampled 5 of 4 records"


@pytest.mark.parametrize(
    "sums",
    [
        {"service_ss": 0.1},  # less than all alike
        {"service_ss": 1e9},  # more than one alone
        {"sampled": 0, "wait_s": 0.0, "wait_ss": 0.0},  # of nothing
        {"wait_s": 0.0},
    ],
)
def test_sums_that_no_times_have_are_not_used(sums):
    """Half a report, or one of another layout, is still made of finite numbers."""
    seen = observe(operator(processors=(replace(processor("p0"), **sums),)))
    assert not seen.usable
    assert "of p0 cannot be the sums" in seen.reason


@pytest.mark.parametrize("counter", ["entered", "completed"])
@pytest.mark.parametrize("wrong", WRONG)
def test_a_number_of_roots_that_cannot_be_is_not_used(counter, wrong):
    seen = observe(roots=root_report(**{counter: wrong}))
    assert seen.reason.startswith(f"roots: {counter} is ")


@pytest.mark.parametrize("which", ["completions", "sums"])
def test_times_of_roots_that_cannot_be_are_not_used(which):
    fine = Sketch.of([1.0])
    for wrong in (nan, inf, -1.0):
        spoilt = Sketch.of_counts(fine.counts, wrong, 1.0)
        assert observe(roots=root_report(**{which: spoilt})).reason.startswith(
            f"roots: the sum of {which} is"
        )
    negative = Sketch.of_counts(-fine.counts, 1.0, 1.0)
    for spoilt in (negative, Sketch.of([1.0] * 101)):
        assert "completed" in observe(roots=root_report(**{which: spoilt})).reason


@pytest.mark.parametrize(
    ("streams", "said"),
    [
        ({"in": nan}, "nan entered by in"),
        ({"out": 100}, "the stream in is missing, or not in chain"),
        ({"in": 99}, "100 entered, but the sum over streams is 99"),
    ],
)
def test_streams_that_do_not_fit_are_not_used(streams, said):
    assert observe(roots=root_report(streams=streams)).reason == f"roots: {said}"


_numbers = (
    st.integers(-1, 3)
    | st.floats()
    | st.sampled_from([*WRONG, np.float32(1.5), np.int64(3), np.float64(nan), 1e-320])
    | st.integers()
)


@given(data=st.data())
def test_no_numbers_make_it_raise(data):
    """Reports cross machines; the loop must outlive whatever arrives."""

    def report(name):
        return OperatorReport(
            name=name,
            wanted=data.draw(st.just(2) | _numbers),
            running=data.draw(st.just(2) | _numbers),
            processors=tuple(
                ProcessorReport(
                    processor=data.draw(st.sampled_from("pqr")),
                    served=data.draw(st.just(3) | _numbers),
                    sampled=data.draw(st.just(1) | _numbers),
                    service_s=data.draw(st.just(2) | _numbers),
                    service_ss=data.draw(st.just(4) | _numbers),
                    cpu_s=data.draw(st.just(1) | _numbers),
                    memory_bytes=data.draw(st.just(1) | _numbers),
                )
                for _ in range(data.draw(st.integers(0, 4)))
            ),
            arrivals=tuple(data.draw(st.lists(st.just(3) | _numbers, max_size=3))),
            bin_s=data.draw(st.just(1.0) | _numbers),
            backlog=data.draw(st.just(0) | _numbers),
            counted_ratio=data.draw(st.just(1.0) | _numbers),
            bytes={"lines": data.draw(st.just(1) | _numbers)},
        )

    made = Pull(
        since_s=data.draw(st.just(0.0) | _numbers),
        at_s=data.draw(st.just(2.0) | _numbers),
        operators=tuple(report(name) for name in ("split", "count")),
        roots=RootReport(
            entered=data.draw(st.just(9) | _numbers), completed=data.draw(st.just(9) | _numbers)
        ),
        cores=data.draw(st.none() | st.just(2) | _numbers),
        busy_cores=data.draw(st.none() | st.just(1) | _numbers),
    )
    seen = aggregate(made, CHAIN, every_s=2)
    assert seen.usable != bool(seen.reason)
    for split in seen.operators.values():
        assert np.isfinite(
            [split.arrivals_per_s, split.served_per_s, split.service_s or 0]
        ).all()


def test_the_largest_numbers_that_are_taken_stay_finite():
    most = ProcessorReport(
        processor="p0", served=10**18, sampled=10**18, service_s=1e18, service_ss=1e18
    )
    seen = observe(
        operator(processors=(most,), arrivals=(10**18,) * 60, bin_s=10 / 60, backlog=10**18)
    )
    split = seen.operators["split"]
    assert seen.usable
    assert (split.service_s, split.service_scv, split.arrival_scv) == (1, 0, 0)
    assert np.isfinite([split.arrivals_per_s, split.served_per_s, split.utilisation]).all()


def test_whole_numbers_of_numpy_do_not_wrap_around():
    most = ProcessorReport(
        processor="p",
        served=np.int64(10**18),
        sampled=np.int64(10**18),
        service_s=np.int64(10**18),
        service_ss=np.int64(10**18),
    )
    swarmed = tuple(replace(most, processor=f"p{i}") for i in range(12))
    seen = observe(operator(processors=swarmed, arrivals=(np.int64(10**18),) * 10))
    assert seen.usable, seen.reason
    assert seen.operators["split"].served == 12 * 10**18


# --- what it takes ---


def test_cpu_seconds_memory_and_bytes_are_told_of_each_operator():
    two = (
        processor("p0", served=50, cpu_s=1.0, memory_bytes=3000),
        processor("p1", served=150, cpu_s=3.0, memory_bytes=4000),
    )
    told = pull(operator(processors=two, bytes={"lines": 500, "words": 20}))
    seen = aggregate(replace(told, cores=2, busy_cores=np.float64(1.5)), CHAIN, every_s=10)
    split = seen.operators["split"]
    assert split.cpu_s == pytest.approx(4.0 / 200)
    assert split.memory_bytes == 7000
    assert split.bytes_per_s == {"lines": 50, "words": 2}
    assert (seen.cores, seen.busy_cores) == (2.0, 1.5)
    assert seen.computing_cores == pytest.approx(0.4)
    assert seen.free_cores == pytest.approx(2 - (1.5 - 0.4))


@pytest.mark.parametrize(
    "told", [{}, {"times_s": (), "cpu_s": 1.0}], ids=["no cpu", "no record"]
)
def test_what_nobody_counted_computes_nothing_that_is_known(told):
    seen = observe(operator(processors=(processor(**told),)))
    assert seen.operators["split"].cpu_s is None
    assert (seen.cores, seen.busy_cores, seen.free_cores) == (None, None, None)


def test_a_machine_that_is_all_busy_with_others_leaves_a_little():
    assert machine(cores=2, busy_cores=2.5).free_cores == pytest.approx(0.5)
    assert machine(cores=2).free_cores == 2


def on_nodes(**fields):
    """Return what is seen of two nodes, on which three processors compute."""
    three = (
        processor("p0", served=50, cpu_s=4.0, node="one"),
        processor("p1", served=50, cpu_s=2.0, node="two"),
        processor("p2", served=50, cpu_s=2.0, node="two"),
    )
    other = (processor("q0", served=50, cpu_s=1.0, node="two"),)
    told = pull(operator(processors=three), operator("count", processors=other))
    nodes = {
        "one": NodeReport(cores=2.0, busy_cores=1.0),
        "two": NodeReport(cores=4.0, **fields),
    }
    return aggregate(replace(told, nodes=nodes), CHAIN, every_s=10)


def test_of_each_node_it_is_known_who_computes_there():
    seen = on_nodes(busy_cores=np.float64(3.5))
    assert seen.nodes == {
        "one": ObservedNode(
            cores=2.0, busy_cores=1.0, running={"split": 1}, computing={"split": 0.4}
        ),
        "two": ObservedNode(
            cores=4.0,
            busy_cores=3.5,
            running={"split": 2, "count": 1},
            computing={"split": 0.4, "count": 0.1},
        ),
    }
    assert (seen.cores, seen.busy_cores) == (6.0, 4.5)
    # 0.6 and 3 cores are busy with something else
    assert seen.free_cores.nodes == pytest.approx({"one": 1.4, "two": 1.0})
    more = replace(seen, per_node=4, most_nodes=3).free_cores
    assert (more.per_node, more.most) == (4, 3)


def test_of_a_node_that_is_not_known_to_be_busy_all_cores_are_free():
    seen = on_nodes()
    assert (seen.cores, seen.busy_cores) == (6.0, None)
    assert seen.free_cores.nodes["two"] == 4.0


def test_the_first_seconds_say_nothing_of_how_busy_nodes_are():
    nodes = {"one": NodeReport(cores=2.0, busy_cores=2.0)}
    seen = machine(nodes=nodes, warming=True)
    assert seen.nodes == {"one": ObservedNode(cores=2.0)}
    assert seen.busy_cores is None


@pytest.mark.parametrize("wrong", [float("nan"), -1, 0, "4"])
def test_cores_of_nodes_that_cannot_be_are_named(wrong):
    nodes = {"one": NodeReport(cores=wrong)}
    assert machine(nodes=nodes).reason == f"node one: cores is {shown(wrong)}"
    if wrong != 0:
        busy = {"one": NodeReport(cores=1, busy_cores=wrong)}
        assert machine(nodes=busy).reason == f"node one: busy_cores is {shown(wrong)}"


# --- who reports ---


def test_an_operator_that_is_missing_is_named():
    made = pull()
    alone = Pull(since_s=0, at_s=10, operators=made.operators[:1], roots=made.roots)
    assert aggregate(alone, CHAIN, every_s=10).reason == "count: the report is missing"


def test_an_operator_that_is_unknown_is_named():
    assert observe(operator("spilt")).reason == "spilt: there is no such operator in chain"


def test_an_operator_that_is_reported_twice_is_named():
    made = pull()
    twice = Pull(since_s=0, at_s=10, operators=made.operators * 2, roots=made.roots)
    assert (
        aggregate(twice, CHAIN, every_s=10).reason == "split: the operator was reported 2 times"
    )


def test_a_processor_that_reports_twice_counts_once():
    twice = (processor("p0"), processor("p0"), processor("p1"))
    seen = observe(operator(processors=twice, running=2))
    assert seen.usable
    assert seen.operators["split"].served == 100
    assert seen.notes == ("split: duplicate reports ignored (1)",)


def test_lost_reports_are_made_up_for_by_those_that_came():
    seen = observe(operator(processors=(processor("p0"), processor("p1")), running=5))
    split = seen.operators["split"]
    assert seen.usable
    assert (split.served, split.samples) == (250, 100)
    assert split.utilisation == pytest.approx(250 * 0.1 / (5 * 10))
    assert "split: 2 of 5 processors reported" in seen.notes[0]


def test_lost_counts_of_arrivals_are_made_up_for_but_say_nothing_of_bursts():
    counts = {"arrivals": (10,) * 40, "bin_s": 0.25}
    whole = observe(operator(**counts)).operators["split"]
    seen = observe(operator(**counts, counted_ratio=0.5))
    half = seen.operators["split"]
    assert half.arrivals_per_s == 2 * whole.arrivals_per_s
    assert (whole.arrival_scv, half.arrival_scv) == (0, None)
    assert "arrivals were counted in 0.5 of its queues" in seen.notes[0]


def test_an_operator_none_of_whose_processors_report_is_not_guessed_at():
    seen = observe(operator(processors=(), running=3))
    assert seen.reason == "split: none of its 3 processors reported"


def test_an_operator_without_processors_has_no_utilisation():
    split = observe(operator(processors=())).operators["split"]
    assert (split.running, split.service_s, split.utilisation) == (0, None, None)


def test_processors_that_left_still_count_for_what_they_served():
    split = observe(operator(running=1)).operators["split"]
    assert (split.running, split.served) == (1, 100)


def test_zero_served_leaves_times_unknown():
    seen = observe(operator(processors=(processor("p0", ()),), arrivals=(0,) * 10))
    split = seen.operators["split"]
    assert seen.usable
    assert (split.arrivals_per_s, split.served_per_s, split.samples) == (0, 0, 0)
    unknown = (split.service_s, split.service_scv, split.wait_s, split.sojourn_s)
    assert (*unknown, split.utilisation, split.arrival_scv) == (None,) * 6


def test_one_sample_has_a_mean_and_no_variance():
    split = observe(operator(processors=(processor("p0", (0.1,)),))).operators["split"]
    assert (split.service_s, split.service_scv) == (0.1, None)


def test_times_too_short_for_the_clock_are_regular():
    split = observe(operator(processors=(processor("p0", (0.0,) * 9),))).operators["split"]
    assert (split.service_s, split.service_scv) == (0, 0)


# --- outliers ---


def swarm(*means_s, samples=50):
    rng = np.random.default_rng(3)
    return tuple(
        processor(f"p{i}", tuple(rng.exponential(mean_s, samples)))
        for i, mean_s in enumerate(means_s)
    )


def test_a_processor_a_hundred_times_slower_than_the_others_is_left_out():
    seen = observe(operator(processors=swarm(0.1, 0.1, 10, 0.1, 0.1)), since_s=90, at_s=100)
    split = seen.operators["split"]
    assert (split.samples, split.served) == (200, 250)
    assert split.service_s == pytest.approx(0.1, rel=0.3)
    assert "split: p2 is ignored" in seen.notes[0]
    # the processor that is slow is who is looked for
    assert split.longest_service_s > 10


def test_a_processor_that_answers_at_once_is_left_out():
    """One that fails fast takes most records from a shared queue, and looks like progress."""
    failing = processor("p9", (1e-6,) * 5000)
    seen = observe(operator(processors=(*swarm(0.1, 0.1, 0.1), failing)))
    assert seen.operators["split"].samples == 150
    assert "p9 is ignored" in seen.notes[0]


def test_a_single_long_record_is_no_outlier():
    """Ten times the median, but of one sample: exponential times are like that now and then."""
    swarmed = (*swarm(0.1, 0.1, 0.1), processor("p9", (1.02,)))
    seen = observe(operator(processors=swarmed))
    assert seen.operators["split"].samples == 151
    assert seen.notes == ()


@pytest.mark.parametrize(
    "means_s",
    [(0.1, 10.0), (0.1, 0.1, 10.0, 10.0), (0.001, 0.1, 10.0), (0.0, 0.0, 1.0), (0.1, 0.2, 0.4)],
    ids=["two", "two against two", "all apart", "too short for the clock", "near enough"],
)
def test_where_nobody_can_tell_who_is_right_all_stay(means_s):
    seen = observe(operator(processors=swarm(*means_s)), since_s=90, at_s=100)
    assert seen.operators["split"].samples == 50 * len(means_s)
    assert seen.notes == ()


def test_a_record_served_for_longer_than_there_was_time_is_no_measurement():
    """A processor whose clock jumped would make every other one look idle."""
    jumped = processor("p0", (0.1, 0.1, 4000.0))
    seen = observe(operator(processors=(jumped,)), since_s=90, at_s=100)
    assert not seen.usable
    assert seen.reason.startswith("split: p0 served a record for 2309")
    assert observe(operator(processors=(jumped,)), since_s=8990, at_s=9000).usable


def test_an_idle_processor_among_outliers_is_kept():
    swarmed = (*swarm(0.1, 0.1, 0.1, 0.1, 10), processor("idle", ()))
    seen = observe(operator(processors=swarmed), since_s=90, at_s=100)
    assert seen.operators["split"].samples == 200
    assert len(seen.notes) == 1


def test_constant_times_that_differ_far_are_outliers_too():
    swarmed = tuple(processor(f"p{i}", (t,) * 9) for i, t in enumerate((0.1, 0.1, 0.1, 2.0)))
    assert observe(operator(processors=swarmed)).operators["split"].service_s == pytest.approx(
        0.1
    )


# --- variability of arrivals ---


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ([LEAST_PER_BIN] * LEAST_BINS, (0.0, LEAST_BINS)),
        ([LEAST_PER_BIN] * (LEAST_BINS - 1), (None, LEAST_BINS - 1)),
        ([LEAST_PER_BIN - 1] * LEAST_BINS, (None, LEAST_BINS)),
        ([LEAST_PER_BIN - 1] * 2 * LEAST_BINS, (0.0, LEAST_BINS)),
        ([7] * (2 * LEAST_BINS - 1), (0.0, 2 * LEAST_BINS - 1)),
        ([], (None, 0)),
    ],
)
def test_too_few_bins_or_too_little_in_them_tell_nothing(counts, expected):
    assert dispersion(counts) == expected


def test_a_bin_cut_short_counts_for_the_rate_alone():
    """Half a bin holds half as much, which is no burst."""
    counts = (10,) * 40 + (5,)
    split = observe(
        operator(arrivals=counts, bin_s=0.25),
        operator("count", arrivals=(30,) * 11),
        at_s=10.125,
    ).operators["split"]
    assert split.arrivals_per_s == pytest.approx(405 / 10.125)
    assert (split.arrival_scv, split.bins) == (0, 40)


def test_ends_of_bins_may_be_off_by_the_rounding_of_the_clock():
    start_s = 1.7e9 + 0.1
    seen = observe(
        operator(arrivals=(10,) * 100, bin_s=0.1), since_s=start_s, at_s=start_s + 10.0
    )
    assert seen.usable, seen.reason
    assert seen.operators["split"].arrival_scv == 0


def streams():
    """Return streams of gaps, or of counts, whose asymptotic scv is known."""
    rng = np.random.default_rng(11)
    number = 200_000
    early = rng.random(number) < (1 + sqrt(0.6)) / 2  # two phases with equal shares of time
    p = (1 + sqrt(0.6)) / 2
    bursty = rng.exponential(np.where(early, 1 / (2 * p), 1 / (2 - 2 * p)))
    return {
        "metronome": (np.full(number, 1.0), 0.0),
        "regular": (rng.gamma(4, 0.25, number), 0.25),
        "poisson": (rng.exponential(1.0, number), 1.0),
        "bursty": (bursty, 4.0),
        "batches": (np.where(np.arange(number) % 5, 0.0, rng.exponential(5.0, number)), 5.0),
    }


@pytest.mark.parametrize("name", ["metronome", "regular", "poisson", "bursty", "batches"])
def test_dispersion_converges_to_the_scv(name):
    """With 400 arrivals per bin; the error is √(2/(bins-1)) of it, taken three times."""
    gaps, scv = streams()[name]
    at = np.cumsum(gaps)
    width = 400.0
    bins = int(at[-1] // width)
    counts = np.bincount((at[at < bins * width] // width).astype(int), minlength=bins)
    # taken in groups, since `dispersion` would join all into some thirty
    pieces = [dispersion(counts[i : i + 30].tolist())[0] for i in range(0, bins - 30, 30)]
    error = 3 * scv * sqrt(2 / (30 - 1) / len(pieces))
    assert np.mean(pieces) == pytest.approx(scv, abs=error + 0.01)


@pytest.mark.parametrize(
    ("scv", "samples", "relative"), [(1.0, 400, 1.0), (1.0, 10_000, 1.0), (4.0, 10_000, 2.0)]
)
def test_service_times_converge(scv, samples, relative):
    """The mean to √(scv/n); 300 repetitions must agree with that, none far outside."""
    rng = np.random.default_rng(5)
    errors = []
    for _ in range(300):
        times = rng.gamma(1 / scv, scv * 0.1, samples)
        report = ProcessorReport(
            processor="p0",
            served=samples,
            sampled=samples,
            service_s=float(times.sum()),
            service_ss=float((times**2).sum()),
        )
        split = observe(operator(processors=(report,))).operators["split"]
        errors.append(split.service_s / 0.1 - 1)
    expected = relative / sqrt(samples)
    assert np.std(errors) == pytest.approx(expected, rel=0.15)
    assert abs(np.mean(errors)) < 4 * expected / sqrt(300)


def test_times_of_a_start_are_not_told():
    seen = machine(cores=2, busy_cores=1.9, warming=True)
    split = seen.operators["split"]
    assert (seen.usable, seen.warming, seen.busy_cores, seen.free_cores) == (
        True,
        True,
        None,
        2,
    )
    assert (split.samples, split.cpu_s, split.utilisation, split.transfer.number) == (
        0, None, None, 0,
    )  # fmt: skip
    assert split.longest_service_s is None
    assert (split.arrivals_per_s, split.served) == (10, 100)
    assert machine(cores=2, busy_cores=1.9).operators["split"].samples == 100


@pytest.mark.parametrize("wrong", WRONG, ids=shown)
def test_commits_and_a_hottest_key_that_cannot_be_are_named(wrong):
    assert machine(commits=wrong).reason == f"the engine: commits is {shown(wrong)}"
    assert observe(operator(hottest=wrong)).reason == f"split: hottest is {shown(wrong)}"


def test_what_is_told_of_keys_commits_and_processors_is_passed_on():
    seen = observe(operator(hottest=0.25, missing="out of memory"), commits=2)
    split = seen.operators["split"]
    assert (seen.commits, split.hottest, split.missing) == (2, 0.25, "out of memory")


@pytest.mark.parametrize("shape", ["poisson", "batches", "on and off"])
def test_bursts_are_no_change_of_the_load(shape):
    """What chance does is told as before, but for one interval in hundreds."""
    rng = np.random.default_rng(4)
    counts = {
        "poisson": lambda: rng.poisson(10, 30),
        "batches": lambda: 5 * rng.poisson(2, 30),
        "on and off": lambda: rng.poisson(20 * (rng.random(30) < 0.5)),
    }[shape]
    told = [dispersion(counts())[0] for _ in range(1000)]
    assert sum(scv is None for scv in told) <= 5


@pytest.mark.parametrize("at", [3, 15, 27])
def test_a_load_that_steps_says_nothing_of_how_irregular_it_is(at):
    rng = np.random.default_rng(5)
    stepped = [
        np.concatenate([rng.poisson(40, at), rng.poisson(8, 30 - at)]) for _ in range(200)
    ]
    told = [dispersion(counts)[0] for counts in stepped]
    assert sum(scv is None for scv in told) >= 195

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sojourn.errors import BadInput, BadTopology
from sojourn.measure.aggregate import aggregate
from sojourn.measure.observation import (
    Moments,
    Observation,
    ObservedNode,
    ObservedOperator,
)
from sojourn.measure.observed import (
    LEAST_SAMPLES,
    LEAST_SCV_SAMPLES,
    measured,
    observed,
)
from sojourn.model.cores import demand, slowed
from sojourn.model.network import predict
from sojourn.topology import Arrival, Operator, Topology
from sojourn.topology.node_cores import NodeCores, in_turn
from strategies import topologies
from unit.measure.pulls import CHAIN, operator, processor, pull

LOOP = Topology(
    name="loop",
    arrivals=(Arrival(name="in", per_s=10, into="a"),),
    operators=(
        Operator(name="a", service_s=0.01, emits={"b": 1}),
        Operator(name="b", service_s=0.01, emits={"a": 0.5}),
    ),
)
FORK = Topology(
    name="fork",
    arrivals=(
        Arrival(name="wide", per_s=10, into={"left": 0.5, "right": 0.5}),
        Arrival(name="narrow", per_s=30, into="join"),
    ),
    operators=(
        Operator(name="left", service_s=0.01, emits={"join": 1}),
        Operator(name="right", service_s=0.01, emits={"join": 2}),
        Operator(name="join", service_s=0.01),
    ),
)


def saw(name, per_s, *, served_per_s=None, seconds=100.0, **fields):
    served_per_s = per_s if served_per_s is None else served_per_s
    fields = {"service": Moments(), "wait": Moments()} | fields
    return ObservedOperator(
        name=name,
        wanted=1,
        running=1,
        backlog=0,
        arrivals_per_s=per_s,
        served_per_s=served_per_s,
        served=served_per_s * seconds,
        **fields,
    )


def observation(rates, arrivals_per_s, *, streams=None, **operators):
    seen = {name: saw(name, per_s) for name, per_s in rates.items()} | operators
    return Observation(
        since_s=0,
        at_s=100,
        operators=seen,
        arrivals_per_s=arrivals_per_s,
        completed_per_s=arrivals_per_s,
        streams=streams or {},
    )


def times(number, mean_s, scv):
    return Moments(number, number * mean_s, number * mean_s**2 * (1 + scv))


@given(topology=topologies(), factor=st.floats(0.1, 10), by_stream=st.booleans())
def test_a_topology_that_runs_as_it_says_is_observed_as_it_is(topology, factor, by_stream):
    """Loops, splits and joins included; only the load has changed."""
    faster = topology.scaled(factor)
    streams = {a.name: a.per_s for a in faster.arrivals} if by_stream else {}
    seen = observed(topology, observation(faster.rates, faster.arrivals_per_s, streams=streams))
    assert seen.arrivals_per_s == pytest.approx(faster.arrivals_per_s)
    assert seen.rates == pytest.approx(faster.rates, rel=1e-6, abs=1e-9)
    for one, two in zip(faster.operators, seen.operators, strict=True):
        reached = {t: m for t, m in one.emits.items() if faster.rates[one.name] > 0}
        assert {t: two.emits[t] for t in reached} == pytest.approx(reached, rel=1e-6, abs=1e-9)


@given(rates=st.lists(st.floats(1, 1000), min_size=4, max_size=4), per_s=st.floats(1, 1000))
def test_where_each_operator_has_one_source_the_measured_rates_come_back(rates, per_s):
    """A tree of any shape, whatever the nominal numbers sent were."""
    tree = Topology(
        name="tree",
        arrivals=(Arrival(name="in", per_s=1, into="a"),),
        operators=(
            Operator(name="a", service_s=0.001, emits={"b": 1, "c": 7}),
            Operator(name="b", service_s=0.001, emits={"d": 0.5, "e": 3}),
            *(Operator(name=name, service_s=0.001) for name in "cde"),
        ),
    )
    measured = dict(zip("abcde", [per_s, *rates], strict=True))
    assert observed(tree, observation(measured, per_s)).rates == pytest.approx(measured)


def test_where_sources_join_their_ratio_stays_and_the_measured_rate_comes_back():
    measured = {"left": 4.0, "right": 6.0, "join": 62.0}
    streams = {"wide": 10.0, "narrow": 30.0}
    seen = observed(FORK, observation(measured, 40.0, streams=streams))
    assert seen.rates == pytest.approx(measured)
    assert seen.operator["left"].emits["join"] == pytest.approx(2.0)
    assert seen.operator["right"].emits["join"] == pytest.approx(4.0)


def test_the_gain_of_a_loop_is_measured():
    seen = observed(LOOP, observation({"a": 40.0, "b": 40.0}, 10.0))
    assert seen.operator["b"].emits["a"] == pytest.approx(0.75)
    assert seen.rates == pytest.approx({"a": 40.0, "b": 40.0})


def test_a_loop_that_does_not_die_out_is_refused():
    """More comes back than was served: no allocation will ever hold that."""
    b = saw("b", 40.0, served_per_s=20.0)
    with pytest.raises(BadTopology):
        observed(LOOP, observation({"a": 40.0}, 10.0, b=b))


def test_an_operator_that_cannot_keep_up_does_not_seem_to_send_less():
    """It got 100 and served 20, of which 60 records came: three for each, as always."""
    split = saw("split", 100.0, served_per_s=20.0)
    seen = observed(CHAIN, observation({"count": 60.0}, 100.0, split=split))
    assert seen.operator["split"].emits["count"] == pytest.approx(3)
    assert seen.rates == pytest.approx({"split": 100.0, "count": 300.0})


def test_streams_without_a_rate_of_their_own_share_what_entered():
    seen = observed(FORK, observation(FORK.rates, 80.0))
    assert [arrival.per_s for arrival in seen.arrivals] == [20.0, 60.0]


def test_streams_told_apart_have_their_own_rate():
    streams = {"wide": 60.0, "narrow": 20.0}
    seen = observed(FORK, observation(FORK.rates, 80.0, streams=streams))
    assert [arrival.per_s for arrival in seen.arrivals] == [60.0, 20.0]


def test_shares_of_a_stream_are_measured_where_nothing_else_arrives():
    seen = observed(FORK, observation({"left": 9.0, "right": 1.0, "join": 41.0}, 40.0))
    assert seen.arrivals[0].into == pytest.approx({"left": 0.9, "right": 0.1})


def test_shares_stay_where_other_records_arrive_too():
    mixed = replace(
        FORK, arrivals=(replace(FORK.arrivals[0], into={"left": 0.5, "join": 0.5}),)
    )
    seen = observed(mixed, observation({"left": 9.0, "right": 0.0, "join": 10.0}, 10.0))
    assert seen.arrivals[0].into == {"left": 0.5, "join": 0.5}


def test_less_than_what_enters_from_outside_means_that_nothing_came_from_inside():
    seen = observed(FORK, observation({"left": 5.0, "right": 5.0, "join": 25.0}, 40.0))
    assert seen.operator["left"].emits == {"join": 0.0}


def test_at_most_one_of_the_targets_gets_a_record():
    """1 % too many by chance of counting must not make the route impossible."""
    routed = replace(
        FORK,
        arrivals=(Arrival(name="in", per_s=10, into="join"),),
        operators=(
            Operator(
                name="join", service_s=0.01, emits={"left": 0.4, "right": 0.6}, route="one_of"
            ),
            Operator(name="left", service_s=0.01),
            Operator(name="right", service_s=0.01),
        ),
    )
    seen = observed(routed, observation({"join": 10.0, "left": 4.2, "right": 6.0}, 10.0))
    emits = seen.operator["join"].emits
    assert sum(emits.values()) == pytest.approx(1)
    assert emits["left"] / emits["right"] == pytest.approx(0.7)


def test_too_few_records_do_not_change_what_is_sent():
    split = saw("split", 0.1, seconds=10 * (LEAST_SAMPLES - 1))
    seen = observed(CHAIN, observation({"count": 9.0}, 0.1, split=split))
    assert seen.operator["split"].emits == {"count": 3}


def test_service_times_are_replaced_where_there_are_enough_samples():
    split = saw("split", 10.0, service=times(LEAST_SCV_SAMPLES, 0.2, 2.5), arrival_scv=1.7)
    count = saw("count", 30.0, service=times(LEAST_SCV_SAMPLES - 1, 0.02, 2.5))
    seen = observed(CHAIN, observation({}, 10.0, split=split, count=count))
    one, two = seen.operators
    assert (one.service_s, one.service_scv) == pytest.approx((0.2, 2.5))
    assert (two.service_s, two.service_scv) == pytest.approx((0.02, 1.0))
    assert (one.arrival_scv, two.arrival_scv) == (1.7, None)


def test_the_last_known_service_time_stays_where_there_are_too_few():
    split = saw("split", 10.0, service=times(LEAST_SAMPLES - 1, 0.2, 2.5))
    seen = observed(CHAIN, observation({"count": 30.0}, 10.0, split=split))
    assert seen.operators[0].service_s == CHAIN.operators[0].service_s


def test_the_measured_time_is_that_of_the_nodes_it_ran_on():
    """`service_s` is the time at speed 1; a load divides it by the speed."""
    slow = replace(
        CHAIN, operators=(replace(CHAIN.operators[0], speed=0.5), CHAIN.operators[1])
    )
    split = saw("split", 10.0, service=times(1000, 0.3, 1.0))
    seen = observed(slow, observation({"count": 30.0}, 10.0, split=split))
    assert seen.loads["split"].service_s == pytest.approx(0.3)


def test_times_too_short_to_be_times_are_0():
    split = saw("split", 10.0, service=times(1000, 1e-30, 0.0))
    seen = observed(CHAIN, observation({"count": 30.0}, 10.0, split=split))
    assert seen.operators[0].service_s == 0


def test_without_arrivals_there_is_nothing_to_plan_for():
    with pytest.raises(BadTopology):
        observed(CHAIN, observation({"split": 0.0, "count": 0.0}, 0.0))


def test_what_is_not_usable_gives_no_topology():
    with pytest.raises(BadInput, match="the observation is not usable: the clock stood still"):
        observed(CHAIN, Observation.unusable(0, 0, "the clock stood still"))


# -- what is planned for, whatever was observed ------------------------------------------------


@given(topology=topologies(), factor=st.floats(0.1, 10))
def test_what_can_be_observed_is_what_is_planned_for(topology, factor):
    faster = topology.scaled(factor)
    seen = observation(faster.rates, faster.arrivals_per_s)
    assert measured(topology, seen) == observed(topology, seen)


def test_where_nothing_arrived_the_last_topology_has_half_a_root_in_the_interval():
    idle = measured(CHAIN, observation({"split": 0.0, "count": 0.0}, 0.0))
    assert idle.arrivals_per_s == pytest.approx(0.5 / 100)
    assert idle.operators == CHAIN.operators
    assert measured(idle, observation({"split": 0.0, "count": 0.0}, 0.0)) == idle


def test_where_nothing_arrived_there_is_never_more_than_was_known():
    """A root in an hour is nothing in most intervals, and no reason to plan for more."""
    rare = CHAIN.scaled(1e-4 / CHAIN.arrivals_per_s)
    idle = measured(rare, observation({"split": 0.0, "count": 0.0}, 0.0))
    assert idle.rates == pytest.approx(rare.rates)


def test_shares_of_streams_outlast_an_interval_without_any():
    idle = measured(FORK, observation(dict.fromkeys(FORK.operator, 0.0), 0.0))
    assert [a.per_s for a in idle.arrivals] == pytest.approx([0.5 / 400, 1.5 / 400])


@pytest.mark.parametrize("served_per_s", [26.0, 13.0])
def test_a_loop_that_seems_to_multiply_is_the_one_known_at_the_load_that_arrived(served_per_s):
    """Of few records more may come back than was served: with a gain of 1.03, or 2."""
    b = saw("b", 40.0, served_per_s=served_per_s)
    seen = observation({"a": 60.0}, 20.0, b=b)
    looped = measured(LOOP, seen)
    assert looped.operators == LOOP.operators
    assert looped.arrivals_per_s == pytest.approx(20.0)


def test_an_operator_without_samples_keeps_the_time_that_was_known():
    split = saw("split", 10.0, service=times(1000, 0.3, 1.0))
    seen = measured(CHAIN, observation({"count": 30.0}, 10.0, split=split))
    assert seen.operator["split"].service_s == pytest.approx(0.3)
    assert seen.operator["count"].service_s == CHAIN.operator["count"].service_s


def test_a_rate_beyond_all_measure_leaves_the_last_topology():
    assert measured(CHAIN, observation({"split": 1e30, "count": 1e30}, 1e30)) == CHAIN


def test_what_is_not_usable_is_not_planned_for():
    with pytest.raises(BadInput, match="the observation is not usable"):
        measured(CHAIN, Observation.unusable(0, 10, "no answer"))


# -- from reports ------------------------------------------------------------------------------


def test_from_a_pull_to_a_topology():
    rng = np.random.default_rng(8)
    made = pull(
        operator(
            arrivals=rng.poisson(5, 40),
            bin_s=0.25,
            processors=(processor("p0", tuple(rng.exponential(0.05, 200))),),
        ),
        operator(
            "count",
            arrivals=rng.poisson(5, 40) * 4,
            bin_s=0.25,
            processors=(processor("p0", (0.005,) * 800),),
        ),
    )
    seen = observed(CHAIN, aggregate(made, CHAIN, every_s=10))
    assert seen.operator["split"].service_s == pytest.approx(0.05, rel=0.2)
    assert seen.operator["count"].service_scv == pytest.approx(0, abs=1e-9)
    assert seen.operator["split"].emits["count"] == pytest.approx(4, rel=0.3)
    assert seen.operator["count"].arrival_scv == pytest.approx(4, rel=0.75)


# -- cores ------------------------------------------------------------------------------------

PAIR = Topology(
    name="pair",
    arrivals=(Arrival(name="in", per_s=20, into="parse"),),
    operators=(
        Operator(name="parse", service_s=0.06, cpu_s=0.06, emits={"fetch": 1}),
        Operator(name="fetch", service_s=0.2, cpu_s=0.02),
    ),
    cores=2,
)
RUNNING = {"parse": 4, "fetch": 8}


def sharing(topology, running=RUNNING, *, cores=2.0, others=0.0, **changes):
    """Return what is seen of *topology* while these share its cores, and *others* do."""
    slow = slowed(replace(topology, cores=cores - others), running)
    operators = {
        o.name: replace(
            saw(
                o.name,
                topology.rates[o.name],
                service=times(1000, slow.operator[o.name].service_s, 1.0),
                cpu_s=o.cpu_s,
            ),
            running=running[o.name],
            **changes,
        )
        for o in topology.operators
    }
    seen = observation({}, topology.arrivals_per_s, **operators)
    return replace(seen, cores=cores, busy_cores=demand(topology) + others)


@pytest.mark.parametrize("load", [0.2, 0.7, 1.0])
@pytest.mark.parametrize("others", [0.0, 0.01, 0.1])
def test_what_sharing_cores_cost_is_taken_out_of_service_times(load, others):
    """Else it would be put in again by whatever is predicted of the result."""
    busy = PAIR.scaled(load)
    known = replace(
        busy, operators=tuple(replace(o, service_s=9, cpu_s=None) for o in busy.operators)
    )
    seen = observed(known, sharing(busy, others=others))
    assert seen.cores == pytest.approx(2 - others)
    for operator_ in busy.operators:
        there = seen.operator[operator_.name]
        assert there.service_s == pytest.approx(operator_.service_s, rel=1e-6)
        assert there.cpu_s == pytest.approx(operator_.cpu_s, rel=1e-6)


def sharing_nodes(topology, running, *cores, others=0.0):
    """Return the same of processors that are on nodes in turn, with *others* on the first."""
    names = [f"node-{number}" for number in range(len(cores))]
    free = dict(zip(names, cores, strict=True)) | {names[0]: cores[0] - others}
    slow = slowed(replace(topology, cores=NodeCores(nodes=free)), running)
    seen = sharing(topology, running)
    operators = {
        name: replace(o, service=times(1000, slow.operator[name].service_s, 1.0))
        for name, o in seen.operators.items()
    }
    counts = {
        name: in_turn(k, first, len(cores)) for first, (name, k) in enumerate(running.items())
    }
    used = {o.name: topology.rates[o.name] * o.cpu_s for o in topology.operators}
    nodes = {}
    for place, (name, there) in enumerate(zip(names, cores, strict=True)):
        computing = {o: used[o] * counts[o][place] / running[o] for o in used}
        nodes[name] = ObservedNode(
            cores=there,
            busy_cores=sum(computing.values()) + others * (place == 0),
            running={o: counts[o][place] for o in used},
            computing=computing,
        )
    return replace(seen, operators=operators, cores=None, busy_cores=None, nodes=nodes)


@pytest.mark.parametrize("load", [0.2, 0.7, 1.0])
def test_what_sharing_the_cores_of_nodes_cost_is_taken_out_too(load):
    busy, running = PAIR.scaled(2 * load), {"parse": 8, "fetch": 16}
    seen = observed(busy, sharing_nodes(busy, running, 2.0, 2.0))
    assert seen.cores.nodes == pytest.approx({"node-0": 2.0, "node-1": 2.0})
    for operator_ in busy.operators:
        there = seen.operator[operator_.name]
        assert there.service_s == pytest.approx(operator_.service_s, rel=1e-3)
        assert there.cpu_s == pytest.approx(operator_.cpu_s, rel=1e-3)


def test_what_others_use_of_a_node_is_not_free_there():
    running = {"parse": 8, "fetch": 16}
    seen = observed(PAIR, sharing_nodes(PAIR, running, 2.0, 2.0, others=0.5))
    assert seen.cores.nodes == pytest.approx({"node-0": 1.5, "node-1": 2.0})


def test_an_operator_on_no_node_shares_no_cores():
    """One of Spark's own, or one whose processors have done nothing yet."""
    seen = sharing_nodes(PAIR, {"parse": 8, "fetch": 16}, 2.0, 2.0)
    nodes = {name: replace(node, computing={}) for name, node in seen.nodes.items()}
    there = observed(PAIR, replace(seen, nodes=nodes)).operator["parse"]
    assert there.service_s == pytest.approx(seen.operators["parse"].service_s)


def test_where_all_cores_are_busy_computing_is_not_taken_for_waiting():
    """Else an operator that cannot get a core would seem to need more processors."""
    full = replace(
        saw("parse", 50.0, served_per_s=2 / 0.06, service=times(1000, 0.18, 1.0), cpu_s=0.06),
        running=6,
    )
    seen = replace(observation({"fetch": 33.0}, 50.0, parse=full), cores=2.0, busy_cores=2.0)
    unknown = replace(PAIR, operators=tuple(replace(o, cpu_s=None) for o in PAIR.operators))
    for known in (PAIR, unknown):
        there = observed(known, seen).operator["parse"]
        assert (there.service_s, there.cpu_s) == pytest.approx((0.06, 0.06))


def test_where_all_cores_are_busy_waiting_is_what_it_was_before():
    full = replace(
        saw("fetch", 20.0, served_per_s=20.0, service=times(1000, 0.9, 1.0), cpu_s=0.1),
        running=20,
    )
    seen = replace(observation({"parse": 20.0}, 20.0, fetch=full), cores=2.0, busy_cores=2.0)
    there = observed(PAIR, seen).operator["fetch"]
    assert (there.service_s, there.cpu_s) == pytest.approx((0.1 + 0.18, 0.1))


def test_measuring_the_same_again_changes_nothing():
    once = observed(PAIR, sharing(PAIR))
    twice = observed(once, sharing(PAIR))
    assert twice.operator["parse"].service_s == once.operator["parse"].service_s
    assert predict(once, RUNNING).mean_s == pytest.approx(predict(PAIR, RUNNING).mean_s)


def test_computing_never_takes_longer_than_the_record_did():
    """A record that used several cores at once, or was timed by another clock."""
    seen = observed(PAIR, sharing(PAIR, cpu_s=7.0))
    assert seen.operator["parse"].cpu_s == seen.operator["parse"].service_s


def test_where_nobody_counts_what_was_declared_stays():
    seen = observed(PAIR, replace(sharing(PAIR, cpu_s=None), cores=None, busy_cores=None))
    assert seen.cores == 2
    assert seen.operator["fetch"].cpu_s == 0.02
    slow = slowed(PAIR, RUNNING).operator["fetch"]
    assert seen.operator["fetch"].service_s == pytest.approx(slow.service_s)


def test_what_was_declared_stays_within_what_was_measured():
    short = saw("parse", 20.0, service=times(1000, 0.01, 1.0))
    seen = observed(PAIR, observation({"fetch": 20.0}, 20.0, parse=short))
    assert seen.operator["parse"].cpu_s == seen.operator["parse"].service_s == 0.01


def test_a_faster_processor_computes_faster_too():
    twice = replace(PAIR.operators[0], speed=2.0, service_s=0.12, cpu_s=0.12)
    fast = replace(PAIR, operators=(twice, PAIR.operators[1]))
    there = observed(fast, sharing(PAIR)).operator["parse"]
    assert (there.service_s, there.cpu_s) == pytest.approx((0.12, 0.12))


@pytest.mark.parametrize(
    ("hottest", "served", "believed"),
    [(0.5, 10_000, 0.485), (0.5, 100, 0.35), (0.04, 100, 0.0), (0.0, 10_000, 0.2)],
)
def test_the_hottest_key_has_the_part_that_it_surely_has(hottest, served, believed):
    """Of a hundred records some key has four by chance; of none read by key, what was known."""
    known = replace(
        PAIR, operators=(replace(PAIR.operators[0], hottest_key=0.2), *PAIR.operators[1:])
    )
    seen = sharing(PAIR)
    name = PAIR.operators[0].name
    told = replace(seen.operators[name], hottest=hottest, served=served)
    after = observed(known, replace(seen, operators={**seen.operators, name: told}))
    assert after.operator[name].hottest_key == pytest.approx(believed, abs=1e-3)

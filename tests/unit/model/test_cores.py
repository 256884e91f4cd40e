from dataclasses import replace

import pytest

import sojourn as sj
from sojourn.errors import BadNumber, BadTopology, TooFewCores
from sojourn.model.cores import all_cores, computing, demand, slowed, stretched
from sojourn.model.network import mean_s, predict
from sojourn.queueing.sharing import stretch
from sojourn.topology.node_cores import NodeCores

# 1.2 cores for parse, 0.4 for fetch, which mostly waits
PAIR = sj.Topology(
    name="pair",
    arrivals=(sj.Arrival(name="in", per_s=20, into="parse"),),
    operators=(
        sj.Operator(name="parse", service_s=0.06, cpu_s=0.06, emits={"fetch": 1}),
        sj.Operator(name="fetch", service_s=0.2, cpu_s=0.02),
    ),
    cores=2,
)
ALLOCATION = {"parse": 4, "fetch": 8}


def test_demand_is_what_records_compute():
    assert demand(PAIR) == pytest.approx(1.6)


def test_a_faster_processor_computes_less():
    fast = replace(PAIR, operators=(replace(PAIR.operators[0], speed=2), PAIR.operators[1]))
    assert demand(fast) == pytest.approx(1.0)


def test_processors_that_never_compute_share_no_core():
    waits = replace(PAIR, operators=(PAIR.operators[0], replace(PAIR.operators[1], cpu_s=None)))
    few, many = (computing(waits, {"parse": 4, "fetch": k}).stretch for k in (5, 500))
    assert few == many > 1


def test_processors_that_mostly_wait_share_little():
    """Eight that compute for a tenth of their time are hardly one."""
    assert computing(PAIR, {"parse": 2, "fetch": 8}).stretch < 1.5
    assert computing(PAIR, {"parse": 10, "fetch": 8}).stretch > 2


def test_only_what_computes_is_stretched():
    longer = computing(PAIR, ALLOCATION).stretch
    slow = stretched(PAIR, ALLOCATION).operator
    assert slow["parse"].service_s == pytest.approx(0.06 * longer)
    assert slow["fetch"].service_s == pytest.approx(0.18 + 0.02 * longer)


def test_nothing_is_stretched_twice():
    """Every layer may ask for it, and the first one that does is the last."""
    once = stretched(PAIR, ALLOCATION)
    assert stretched(once, ALLOCATION) == slowed(once, ALLOCATION) == once
    assert predict(once, ALLOCATION).mean_s == predict(PAIR, ALLOCATION).mean_s


@pytest.mark.parametrize(
    "unknown",
    [
        replace(PAIR, cores=None),
        replace(PAIR, operators=tuple(replace(o, cpu_s=None) for o in PAIR.operators)),
    ],
    ids=["no cores", "nothing that computes"],
)
def test_where_it_is_not_known_nothing_changes(unknown):
    assert stretched(unknown) is unknown
    assert computing(unknown) is None
    assert predict(unknown, ALLOCATION).computing is None


def test_a_prediction_counts_the_processors_that_share():
    few, many = {"parse": 2, "fetch": 6}, {"parse": 20, "fetch": 60}
    assert predict(PAIR, few).computing.stretch < predict(PAIR, many).computing.stretch
    assert predict(PAIR, many).computing.stretch <= computing(PAIR).stretch
    assert mean_s(PAIR, few) == predict(PAIR, few).mean_s


def test_processors_beyond_the_cores_do_not_help():
    """With two processors on two cores the wait is for a processor, with more for a core."""
    alone = replace(
        PAIR, operators=(replace(PAIR.operators[0], service_s=0.08, cpu_s=0.08, emits={}),)
    )
    two, some, many = (predict(alone, {"parse": k}).mean_s for k in (2, 5, 40))
    assert two == pytest.approx(0.08 * 2.7778, rel=1e-3)
    assert many == pytest.approx(two, rel=1e-3)
    assert 0.7 * two < some < two


def test_cores_that_cannot_keep_up_are_named_with_what_would_help():
    with pytest.raises(
        TooFewCores, match=r"the load needs 2\.4 cores, but there are 2; more proc"
    ):
        predict(PAIR.scaled(1.5), {"parse": 50, "fetch": 50})


def test_a_running_application_without_enough_cores_shares_what_there_is():
    """Four that compute, and eight that do so a quarter of the time: three for each core."""
    slow = slowed(PAIR.scaled(1.5), ALLOCATION).operator
    assert slow["parse"].service_s == pytest.approx(0.06 * 3)
    assert slow["fetch"].service_s == pytest.approx(0.18 + 0.02 * 3)


def test_a_prediction_says_what_it_took_into_account():
    said = str(predict(PAIR, ALLOCATION).computing)
    assert said.startswith("computing uses 1.6 of 2 cores and takes 1.9")


# -- nodes of a cluster -----------------------------------------------------------------------


def on_nodes(*cores, topology=PAIR, **more):
    nodes = {f"node-{number}": each for number, each in enumerate(cores)}
    return replace(topology, cores=NodeCores(nodes=nodes, **more))


def test_one_node_is_one_machine():
    alone, machine = on_nodes(2), PAIR
    for allocation in (None, ALLOCATION, {"parse": 1, "fetch": 1}):
        assert computing(alone, allocation) == computing(machine, allocation)
    assert (
        predict(alone, ALLOCATION).percentiles_s == predict(machine, ALLOCATION).percentiles_s
    )


def test_nodes_that_are_alike_share_the_load():
    """Each has half of the processors, and of the records."""
    busy = PAIR.scaled(2)
    found = computing(on_nodes(2, 2, topology=busy), {"parse": 8, "fetch": 16})
    assert (found.demand, found.cores, found.nodes) == (pytest.approx(3.2), 4, 2)
    assert found.stretch == pytest.approx(computing(PAIR, ALLOCATION).stretch, rel=1e-3)
    assert found.operators == pytest.approx(dict.fromkeys(PAIR.operator, found.stretch))
    assert "of 4 cores on 2 nodes" in str(found)


def test_cores_of_other_nodes_are_no_help():
    """Four cores in two machines are shared by fewer than four in one."""
    busy = PAIR.scaled(2)
    allocation = {"parse": 8, "fetch": 16}
    apart = computing(on_nodes(2, 2, topology=busy), allocation).stretch
    assert apart > 1.1 * computing(replace(busy, cores=4), allocation).stretch
    assert computing(on_nodes(2, 2, topology=busy)).stretch == pytest.approx(stretch(1.6, 2))


def test_who_is_alone_on_a_node_is_not_slowed_down_by_others():
    """In turn, the one processor of fetch is on the second node, with few others."""
    split = replace(
        PAIR, operators=(PAIR.operators[0], replace(PAIR.operators[1], service_s=0.02))
    ).scaled(0.8)
    found = computing(on_nodes(1, 1, topology=split), {"parse": 1, "fetch": 1})
    assert found.operators == {"parse": 1.0, "fetch": 1.0}


def test_processors_on_a_busy_node_get_fewer_of_the_records():
    """Half of the records on the small node would be more than it can compute."""
    found = computing(on_nodes(0.5, 4), {"parse": 8, "fetch": 8})
    half = stretch(0.8, 0.5, 4.4)
    assert 1 < found.operators["parse"] < (half + 1) / 2


def test_twelve_cores_of_three_nodes_carry_what_two_of_the_driver_would_not():
    load = PAIR.scaled(9.9 / 1.6)
    with pytest.raises(TooFewCores, match=r"needs 9.9 cores, but there are 2"):
        stretched(load)
    assert stretched(on_nodes(4, 4, 4, topology=load)).loads["parse"].service_s < 0.3
    with pytest.raises(TooFewCores, match=r"needs 9.9 cores, but there are 9"):
        stretched(on_nodes(3, 3, 3, topology=load))


def test_nodes_that_come_bring_their_cores():
    """With four processors on each node, nine processors are on three."""
    cluster = on_nodes(2, 2, topology=PAIR.scaled(2), per_node=4, most=3)
    assert all_cores(cluster) == 6
    few, many = ({"parse": k, "fetch": 4} for k in (4, 5))
    assert (computing(cluster, few).cores, computing(cluster, many).cores) == (4, 6)
    assert computing(cluster).cores == 6
    plan = sj.minimise(
        on_nodes(2, 2, topology=PAIR.scaled(2.9), per_node=4, most=9), sj.Target("mean", 0.5)
    )
    assert plan.computing.cores >= 6


def test_plans_on_nodes_meet_their_target():
    cluster = on_nodes(2, 2, 2, topology=PAIR.scaled(2.5))
    found = sj.minimise(cluster, sj.Target("mean", 0.4))
    assert mean_s(cluster, found.allocation) <= 0.4
    best = sj.assign(cluster, 30)
    assert mean_s(cluster, best.allocation) <= mean_s(cluster, found.allocation)
    assert sj.explain(cluster, best.allocation).headroom.factor > 1


@pytest.mark.parametrize(
    ("nodes", "error", "said"),
    [
        ({}, BadNumber, "there are none"),
        ({"a": 0}, BadNumber, "a node has none"),
        ({"a": -1}, BadNumber, "negative"),
        ({"a": "2"}, BadTopology, "is not a number"),
        (7, BadTopology, "does not map"),
    ],
)
def test_cores_of_nodes_that_cannot_be_are_refused(nodes, error, said):
    with pytest.raises(error, match=said):
        NodeCores(nodes=nodes)

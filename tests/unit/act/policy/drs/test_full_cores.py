from dataclasses import replace

import pytest

import sojourn as sj
from sojourn.act.best_effort_plan import Goal, aim
from sojourn.act.policy import policy
from sojourn.act.policy.drs.backlog import drain_needs
from sojourn.act.policy.drs.decision import within_cores
from sojourn.act.policy.static import Static
from sojourn.act.recommendation import demand as demanded
from sojourn.decide.plan import HERE, Expected, Node, Plan
from sojourn.engine import Cost
from sojourn.knowledge import Knowledge, Wish
from sojourn.loop import Site, step
from sojourn.measure.observation import (
    Moments,
    Observation,
    ObservedNode,
    ObservedOperator,
)
from sojourn.model.cores import demand, slowed
from sojourn.topology.node_cores import NodeCores

ONE_MACHINE = Site(nodes=[Node(HERE)])

# match computes, fetch waits for something else
PAIR = sj.Topology(
    name="pair",
    arrivals=(sj.Arrival(name="in", per_s=20, into="match"),),
    operators=(
        sj.Operator(name="match", service_s=0.06, cpu_s=0.06, emits={"fetch": 1}),
        sj.Operator(name="fetch", service_s=0.2, cpu_s=0.01),
    ),
    cores=2,
)
CORES = 2.0
START = {"match": 3, "fetch": 6}


def seen(running, per_s, *, at_s=10.0, others=0.0, cores=CORES, backlog=0):
    """Return ten seconds of *per_s* records on *cores*, of which *others* are busy."""
    load = replace(PAIR.scaled(per_s / 20), cores=cores - others)
    part = min(1.0, 0.999 * load.cores / demand(load))
    took = slowed(load, running).operator
    operators = {
        o.name: ObservedOperator(
            name=o.name,
            wanted=running[o.name],
            running=running[o.name],
            backlog=backlog,
            arrivals_per_s=load.rates[o.name] * (1.0 if o.name == "match" else part),
            served_per_s=part * load.rates[o.name],
            served=10 * part * load.rates[o.name],
            service=Moments(
                500, 500 * took[o.name].service_s, 1000 * took[o.name].service_s ** 2
            ),
            wait=Moments(),
            cpu_s=o.cpu_s,
        )
        for o in PAIR.operators
    }
    return Observation(
        since_s=at_s - 10,
        at_s=at_s,
        operators=operators,
        arrivals_per_s=per_s,
        completed_per_s=part * per_s,
        cores=cores,
        busy_cores=part * demand(load) + others,
    )


def known(*observations, allocation=None):
    knowledge = Knowledge(topology=PAIR, plan=Plan.here(allocation or START))
    for observation in observations[:-1]:
        seen, decision = step(knowledge, observation, Static(), ONE_MACHINE)
        knowledge = seen.did(decision)
    return knowledge.saw(observations[-1])


def wished(allocation):
    expected = Expected(statistic="mean", seconds=1.0, arrivals_per_s=20)
    return Wish(allocation=allocation, reason="more is needed", expected=expected)


def limited(decision, knowledge):
    return within_cores(decision, knowledge, knowledge.topology)


BUSY = known(seen(START, 33))
FREE = known(seen(START, 10))
MORE = wished({"match": 9, "fetch": 8})


def test_processors_that_compute_are_not_added_where_cores_are_busy():
    done = limited(MORE, BUSY)
    assert done.allocation == {"match": 3, "fetch": 8}
    assert done.reason == (
        "more is needed, but the 2 cores are busy (2.31 of 2); more processors for match would "
        "not run; only more cores or less load will help"
    )


def test_what_was_expected_of_other_processors_is_not_expected_any_more():
    assert limited(MORE, BUSY).expected is None
    assert limited(MORE, FREE) is MORE


def test_one_core_is_one_core():
    full = known(seen(START, 17, cores=1.0))
    assert "but the 1 core is busy (1.19 of 1)" in limited(MORE, full).reason


def test_where_nothing_is_known_of_cores_nothing_changes():
    unknown = replace(BUSY, topology=replace(PAIR, cores=None), seen=None)
    assert limited(MORE, unknown) is MORE


def test_what_computes_is_still_taken_away():
    fewer = wished({"match": 2, "fetch": 6})
    assert limited(fewer, BUSY) is fewer


def test_nobody_gives_up_what_could_not_run_elsewhere():
    moved = wished({"match": 5, "fetch": 7})
    full = known(seen({"match": 3, "fetch": 9}, 33), allocation={"match": 3, "fetch": 9})
    done = limited(moved, full)
    assert done.allocation == full.allocation


def test_no_more_is_given_back_than_was_held_back():
    down = wished({"match": 4, "fetch": 4})
    full = known(seen({"match": 3, "fetch": 9}, 33), allocation={"match": 3, "fetch": 9})
    assert limited(down, full).allocation == {"match": 3, "fetch": 5}


def test_an_operator_has_its_least_also_where_cores_are_busy():
    match, fetch = PAIR.operators
    bound = replace(PAIR, operators=(replace(match, min_processors=5), fetch))
    done = limited(MORE, replace(BUSY, topology=replace(bound, cores=0.5)))
    assert done.allocation["match"] == 5


@pytest.mark.parametrize(("turns", "after"), [(1, 9), (2, 3), (3, 3)])
def test_a_machine_that_others_keep_busy_takes_two_observations(turns, after):
    """One may be chance: a compiler, or a log that is rotated."""
    quiet = seen(START, 4, at_s=5.0)
    loud = [
        replace(seen(START, 4, at_s=10.0 * i), busy_cores=1.97, cores=2.0)
        for i in range(1, turns + 1)
    ]
    told = replace(known(quiet, *loud), topology=replace(PAIR.scaled(0.2), cores=2))
    assert limited(MORE, told).allocation["match"] == after


# -- what policies make of it ------------------------------------------------------------------


def turns(number, per_s, decide, allocation=START, **load):
    """Yield what is decided, turn by turn, by what the machine can do."""
    knowledge = Knowledge(topology=PAIR, plan=Plan.here(allocation))
    for i in range(1, number + 1):
        observation = seen(knowledge.allocation, per_s, at_s=10.0 * i, **load)
        knowledge, decision = step(knowledge, observation, decide, ONE_MACHINE)
        changed = decision.before.changes(decision.after)
        knowledge = knowledge.did(decision, Cost(changed=changed) if changed else None)
        yield decision


DRS = policy("drs", target=sj.Target("mean", 0.45))


def test_an_overload_of_the_cores_gets_no_more_processors_that_compute():
    decisions = list(turns(12, 40, DRS, backlog=500))
    assert max(d.after.allocation["match"] for d in decisions) == START["match"]
    assert "only more cores" in decisions[-1].reason


def test_an_overload_of_processors_gets_more():
    """Two cores could carry it, three processors that mostly wait could not."""
    decisions = list(turns(12, 18, DRS, {"match": 2, "fetch": 3}, backlog=50))
    assert decisions[-1].after.allocation["fetch"] > 3


def test_others_on_the_machine_count():
    """Without them the load would be 70 % of the cores; with them it is all there is."""
    alone, beside = (list(turns(12, 21, DRS, others=others)) for others in (0.0, 0.55))
    assert all("cores are busy" not in d.reason for d in alone)
    assert max(d.after.allocation["match"] for d in beside) <= max(
        d.after.allocation["match"] for d in alone
    )


def test_a_steady_load_holds_still():
    kinds = [d.kind for d in turns(30, 20, DRS)]
    assert set(kinds[15:]) == {"hold"}


def test_where_cores_cannot_keep_up_there_is_still_an_aim():
    aimed = aim(PAIR.scaled(2), Goal(target=sj.Target("mean", 0.5)))
    assert aimed.note.startswith("the load needs 2.8 cores, but there are 2")
    assert (
        aimed.allocation
        == aim(
            replace(PAIR, cores=None).scaled(2), Goal(target=sj.Target("mean", 0.5))
        ).allocation
    )


def test_policies_that_know_nothing_of_cores_go_by_the_time_records_take():
    observation = seen(START, 20)
    service_s = demanded(PAIR, observation).service_s
    for name, operator in observation.operators.items():
        assert service_s[name] == pytest.approx(operator.service_s, rel=1e-6)


# -- nodes of a cluster -----------------------------------------------------------------------


def seen_on_nodes(running, per_s, nodes, *, at_s=10.0, **more):
    """Return ten seconds of *per_s* records on nodes of four cores each."""
    names = [f"executor-{number + 1}" for number in range(nodes)]
    cluster = NodeCores(nodes=dict.fromkeys(names, 4.0))
    load = replace(PAIR.scaled(per_s / 20), cores=cluster)
    once = seen(running, per_s, at_s=at_s, cores=4.0 * nodes)
    used = {o.name: per_s * o.cpu_s for o in PAIR.operators}
    took = slowed(load, running).operator
    operators = {
        name: replace(
            o,
            service=Moments(500, 500 * took[name].service_s, 1000 * took[name].service_s ** 2),
        )
        for name, o in once.operators.items()
    }
    each = ObservedNode(
        cores=4.0,
        busy_cores=sum(used.values()) / nodes,
        running={name: k // nodes for name, k in running.items()},
        computing={name: cores / nodes for name, cores in used.items()},
    )
    return replace(once, operators=operators, nodes=dict.fromkeys(names, each), **more)


def test_three_nodes_with_9_9_of_12_cores_busy_get_more_processors():
    """A driver with two cores is no reason to hold back."""
    per_s = 9.9 / 0.07
    start = {"match": 12, "fetch": 30}
    knowledge = Knowledge(topology=PAIR, plan=Plan.here(start))
    observation = seen_on_nodes(start, per_s, 3)
    assert observation.busy_cores == pytest.approx(9.9)
    decide = policy("drs", target=sj.Target("mean", 0.35))
    _, decision = step(knowledge, observation, decide, ONE_MACHINE)
    assert decision.kind == "up", decision.reason
    assert "cores" not in decision.reason


def test_nodes_that_are_all_busy_get_no_more():
    start = {"match": 12, "fetch": 30}
    knowledge = Knowledge(topology=PAIR, plan=Plan.here(start))
    known = knowledge.saw(seen_on_nodes(start, 11.6 / 0.07, 3))
    wish = limited(wished({"match": 20, "fetch": 30}), known)
    assert wish.allocation == start
    assert "the 12 cores are busy (11.6 of 12)" in wish.reason


def test_where_nodes_come_for_more_processors_they_bring_cores():
    """Four processors on each node: three more take a fourth node."""
    start = {"match": 6, "fetch": 6}
    knowledge = Knowledge(topology=PAIR, plan=Plan.here(start))
    full = seen_on_nodes(start, 11.6 / 0.07, 3, per_node=4, most_nodes=6)
    known = knowledge.saw(full)
    more = wished({"match": 9, "fetch": 6})
    assert limited(more, known) == more
    no_more = knowledge.saw(replace(full, most_nodes=3))
    assert limited(more, no_more).allocation == start


def test_a_backlog_is_worked_off_on_all_nodes():
    load = replace(PAIR, cores=NodeCores(nodes=dict.fromkeys(("a", "b", "c"), 4.0)))
    needs = drain_needs(load, {"match": 4000.0}, 60.0)
    assert needs["match"] > drain_needs(PAIR, {"match": 4000.0}, 60.0)["match"]

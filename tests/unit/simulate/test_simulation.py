"""A simulation while it runs: repeatable, and no record lost whatever is changed."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sojourn.errors import BadWorkload
from sojourn.simulate.construction import build
from sojourn.simulate.draws import ABSENT, BUSY
from sojourn.simulate.kernel import RECORDS
from sojourn.simulate.simulation import Simulation
from sojourn.simulate.workload import Dispatching, Gaps, Keys, Rates, Workload
from sojourn.topology import Arrival, Operator, Topology
from strategies import topologies

DISPATCH = Dispatching.__args__
LOOP = Topology(
    name="loop",
    arrivals=(
        Arrival(name="many", per_s=30.0, into={"split": 0.7, "work": 0.3}),
        Arrival(name="few", per_s=5.0, into="split", scv=0.5),
    ),
    operators=(
        Operator(name="split", service_s=0.02, emits={"work": 1.5, "end": 1}),
        Operator(name="work", service_s=0.03, transfer_s=0.01, emits={"work": 0.2, "end": 0.5}),
        Operator(name="end", service_s=0.01, service_scv=0.5),
    ),
)
SOME = {"split": 2, "work": 4, "end": 1}


def one(service_s=0.1, per_s=1.0, **how):
    return Topology(
        name="one",
        arrivals=(Arrival(name="roots", per_s=per_s, into="work", scv=how.pop("scv", 1.0)),),
        operators=(Operator(name="work", service_s=service_s, **how),),
    )


def simulation(topology=LOOP, allocation=SOME, *, seed=1, sample_every=1, **workload):
    return Simulation(
        topology,
        allocation,
        workload=Workload(**workload),
        seed=seed,
        sample_every=sample_every,
    )


def passed(run, **limits):
    """Let time pass, and return the roots that completed."""
    return np.concatenate([done.copy() for done in run.advance(**limits)])


def everywhere(dispatch, topology=LOOP):
    return dict.fromkeys(topology.operator, dispatch)


def running(run, name):
    return int((run.processors(name)["state"] != ABSENT).sum())


def arrays(run):
    return run._world  # noqa: SLF001 - how large they are is nobody's business but a test's


def sizes(run):
    return {name: len(array) for name, array in arrays(run)._asdict().items()}


@pytest.mark.parametrize("dispatch", DISPATCH)
def test_the_same_seed_gives_the_same_roots_and_another_seed_others(dispatch):
    once, again, other = (
        passed(simulation(seed=seed, dispatch=everywhere(dispatch)), until_s=100.0)
        for seed in (1, 1, 2)
    )
    assert np.array_equal(once, again)
    assert len(once) > 3000
    assert not np.array_equal(once[:100], other[:100])


@pytest.mark.parametrize("dispatch", DISPATCH)
def test_it_makes_no_difference_how_often_one_looks(dispatch):
    whole = passed(simulation(dispatch=everywhere(dispatch)), until_s=60.0)
    run = simulation(dispatch=everywhere(dispatch))
    in_time = [passed(run, until_s=second / 7) for second in range(1, 421)]
    assert np.array_equal(whole, np.concatenate(in_time))
    run = simulation(dispatch=everywhere(dispatch))
    by_roots = [passed(run, most_roots=roots) for roots in range(13, len(whole), 13)]
    assert np.array_equal(np.concatenate(by_roots), whole[: run.roots_done])


def test_a_long_run_hands_out_its_roots_in_portions():
    run = simulation(one(per_s=1000.0, service_s=0.0001), {"work": 1})
    portions = [len(done) for done in run.advance(until_s=100.0)]
    assert len(portions) > 1
    assert sum(portions) == run.roots_done == pytest.approx(100_000, rel=0.02)


def test_time_stops_where_it_is_told_to_and_never_goes_back():
    run = simulation()
    passed(run, until_s=10.0)
    assert run.now_s == 10.0
    assert len(passed(run, until_s=5.0)) == 0
    assert run.now_s == 10.0
    passed(run, most_roots=run.roots_done + 1)
    assert 10.0 < run.now_s < 11.0


def test_all_that_entered_is_done_or_in_flight():
    run = simulation()
    assert (run.roots_entered, run.roots_done, run.visits) == (0, 0, 0)
    done = passed(run, until_s=50.0)
    assert run.roots_done == len(done)
    assert run.roots_entered >= run.roots_done
    assert run.roots_entered == pytest.approx(35 * 50, rel=0.15)
    assert np.all(done["birth_s"] + done["completion_s"] <= 50.0)
    assert np.all(np.diff(done["birth_s"] + done["completion_s"]) >= -1e-9)
    assert np.all(done["sum_s"] >= done["completion_s"] - 1e-9)


changes = st.lists(
    st.tuples(
        st.floats(0.0, 2.0),  # seconds until then
        st.sampled_from(sorted(SOME)),
        st.integers(1, 9),
        st.sampled_from([0.0, 0.0, 0.05, 1.0]),  # seconds of pause
    ),
    max_size=12,
)


@settings(max_examples=150)
@given(changes=changes, dispatch=st.sampled_from(DISPATCH), seed=st.integers(0, 1000))
def test_no_record_is_lost_whatever_is_resized(changes, dispatch, seed):
    """All that came before the streams ran dry is done exactly once."""
    dry = Rates.steps((0, 30), (sum(change[0] for change in changes) + 1, 0))
    run = simulation(
        seed=seed,
        dispatch=everywhere(dispatch),
        rates={"many": dry, "few": dry},
        keys=everywhere(Keys(number=20, zipf=1.0)),
    )
    wanted, births_s = dict(SOME), []
    for after_s, name, processors, pause_s in changes:
        births_s.extend(passed(run, until_s=run.now_s + after_s)["birth_s"])
        wanted[name] = processors
        run.resize({name: processors}, pause_s=pause_s)
        assert len(births_s) == run.roots_done <= run.roots_entered
    births_s.extend(passed(run)["birth_s"])
    assert len(births_s) == run.roots_done == run.roots_entered
    assert len(set(births_s)) == len(births_s)
    for name, processors in wanted.items():
        assert run.waiting(name) == 0
        assert running(run, name) == processors
        assert not np.any(run.processors(name)["state"] == BUSY)
    assert arrays(run).tally[RECORDS] == 0


@settings(max_examples=60)
@given(topology=topologies(), spread=st.booleans(), data=st.data())
def test_of_any_topology_all_that_entered_comes_out(topology, spread, data):
    allocation = {name: data.draw(st.integers(1, 5)) for name in topology.operator}
    dry_s = 200 / topology.arrivals_per_s
    run = simulation(
        topology,
        allocation,
        spread=spread,
        rates={a.name: Rates.steps((0, a.per_s), (dry_s, 0)) for a in topology.arrivals},
        dispatch={name: data.draw(st.sampled_from(DISPATCH)) for name in topology.operator},
    )
    done = passed(run)
    assert len(done) == run.roots_done == run.roots_entered
    assert run.roots_done <= run.visits
    assert np.all(done["birth_s"] <= dry_s * (1 + 1e-9))
    assert np.all(done["completion_s"] <= done["sum_s"] * (1 + 1e-9) + 1e-9 * dry_s)
    assert arrays(run).tally[RECORDS] == 0


@pytest.mark.parametrize("dispatch", DISPATCH)
def test_processors_that_are_not_wanted_finish_their_record_and_leave(dispatch):
    run = simulation(
        one(service_s=1.0, per_s=50.0, service_scv=0.0),
        {"work": 20},
        dispatch={"work": dispatch},
    )
    passed(run, until_s=10.0)
    run.resize({"work": 3})
    assert 3 <= running(run, "work") <= 20
    run.watch(bin_s=1.0, bins=1)
    passed(run, until_s=11.0)
    assert running(run, "work") == 3
    assert 17 <= run.processors("work")["served"].sum() <= 23
    run.resize({"work": 8})
    assert running(run, "work") == 8
    run.watch(bin_s=1.0, bins=10)
    passed(run, until_s=21.0)
    assert 75 <= run.processors("work")["served"].sum() <= 80


def test_a_processor_that_was_to_leave_may_stay():
    run = simulation(one(service_s=10.0, per_s=100.0, service_scv=0.0), {"work": 6})
    passed(run, until_s=1.0)
    run.resize({"work": 2})
    run.resize({"work": 4})
    assert running(run, "work") == 6
    passed(run, until_s=15.0)
    assert running(run, "work") == 4


@pytest.mark.parametrize("dispatch", DISPATCH)
def test_to_resize_twice_is_to_resize_once(dispatch):
    roots = []
    for times in (1, 2):
        run = simulation(dispatch=everywhere(dispatch))
        passed(run, until_s=5.0)
        for _ in range(times):
            run.resize({"work": 7, "end": 3}, pause_s=1.0)
        roots.append(passed(run, until_s=30.0))
    assert np.array_equal(*roots)


@pytest.mark.parametrize("dispatch", DISPATCH)
def test_in_a_pause_only_what_was_begun_is_served(dispatch):
    run = simulation(
        one(service_s=0.5, per_s=20.0, service_scv=0.0),
        {"work": 12},
        dispatch={"work": dispatch},
    )
    passed(run, until_s=10.0)
    busy = int((run.processors("work")["state"] == BUSY).sum())
    waiting, in_flight = run.waiting("work"), run.roots_entered - run.roots_done
    assert busy + waiting == in_flight
    run.resize({"work": 13}, pause_s=5.0)
    run.watch(bin_s=1.0, bins=5)
    done = passed(run, until_s=14.999)
    assert len(done) == busy
    assert run.waiting("work") == waiting + run.arrivals("work").sum()
    late = passed(run, until_s=16.0)
    assert np.all(late["birth_s"] + late["completion_s"] >= 15.0 + 0.5 - 1e-9)
    assert len(late) >= 13


def test_a_shorter_pause_does_not_end_a_longer_one():
    run = simulation(one(per_s=20.0, service_s=0.01), {"work": 2})
    run.resize({"work": 3}, pause_s=5.0)
    run.resize({"work": 4}, pause_s=1.0)
    assert len(passed(run, until_s=4.999)) == 0
    assert len(passed(run, until_s=6.0)) > 80


@pytest.mark.parametrize("dispatch", DISPATCH)
def test_thousands_that_waited_out_a_pause_start_at_once(dispatch):
    """More events at one moment than there was room for before."""
    run = simulation(
        one(service_s=1.0, per_s=1000.0, service_scv=0.0),
        {"work": 4000},
        dispatch={"work": dispatch},
        keys={"work": Keys(number=100_000)},
    )
    run.resize({"work": 5000}, pause_s=6.0)
    assert len(passed(run, until_s=6.9)) == 0
    passed(run, until_s=60.0)
    assert run.roots_done == pytest.approx(59_000, rel=0.03)
    assert run.waiting("work") < (1000 if dispatch == "by_key" else 1)


def test_any_number_of_changes_may_be_made_at_one_moment():
    run = simulation()
    for turn in range(5000):
        run.resize({"work": 4 + turn % 2}, pause_s=1e-3)
    assert sizes(run)["event"] > 5000
    assert len(passed(run, until_s=10.0)) > 200


def test_thousands_of_operators_are_simulated():
    long = Topology(
        name="long",
        arrivals=(Arrival(name="roots", per_s=10.0, into="o0"),),
        operators=tuple(
            Operator(name=f"o{i}", service_s=1e-4, emits={f"o{i + 1}": 1} if i < 1999 else {})
            for i in range(2000)
        ),
    )
    run = simulation(long, dict.fromkeys(long.operator, 1))
    done = passed(run, until_s=2.0)
    assert np.mean(done["sum_s"]) == pytest.approx(0.2, rel=0.05)


def test_ten_million_processors_are_the_most():
    with pytest.raises(BadWorkload, match="20000000 processors are too many to simulate"):
        simulation(one(), {"work": 20_000_000})


@pytest.mark.parametrize("dispatch", DISPATCH)
def test_arrays_grow_with_what_is_in_flight(dispatch):
    run = simulation(one(service_s=1.0, per_s=500.0), {"work": 10}, dispatch={"work": dispatch})
    before = sizes(run)
    passed(run, until_s=60.0)
    in_flight = run.roots_entered - run.roots_done
    assert in_flight > 20_000
    assert run.waiting("work") >= in_flight - 10
    after = sizes(run)
    assert before["records"] < in_flight <= after["records"] < 4 * in_flight
    assert before["roots"] < in_flight <= after["roots"] < 4 * in_flight
    assert after["event"] == before["event"]  # those that wait are not events


def test_memory_does_not_grow_with_time():
    run = simulation()
    passed(run, until_s=100.0)
    after_some = sizes(run)
    passed(run, until_s=1000.0)
    assert sizes(run) == after_some
    assert run.roots_done > 30_000


def test_slots_are_reused_when_processors_come_and_go():
    run = simulation()
    for turn in range(200):
        run.resize({"work": 1 + 7 * (turn % 2), "end": 1 + turn % 5})
        passed(run, until_s=run.now_s + 0.1)
    assert sizes(run)["slots"] < 50


def test_a_batch_is_more_than_one_event_adds_elsewhere():
    run = simulation(gaps={"many": Gaps(shape="batches", size=5000)})
    passed(run, until_s=1000.0)
    assert run.roots_entered >= 5000


def test_counts_begin_anew_with_each_watch():
    run = simulation(one(per_s=100.0, service_s=0.005), {"work": 1})
    passed(run, until_s=7.0)
    run.watch(bin_s=0.5, bins=20)
    assert run.processors("work")["served"].sum() == 0
    before = run.roots_done
    entered = run.roots_entered
    passed(run, until_s=17.0)
    slot = run.processors("work")[0]
    assert slot["served"] == slot["sampled"] == run.roots_done - before
    assert slot["service_s"] == pytest.approx(0.005 * slot["served"], rel=0.2)
    assert slot["service_ss"] > slot["service_s"] ** 2 / slot["served"]
    assert slot["wait_ss"] > slot["wait_s"] ** 2 / slot["served"]
    counts = run.arrivals("work")
    assert len(counts) == 20
    assert counts.sum() == run.roots_entered - entered
    assert np.all((counts > 20) & (counts < 85))


def test_every_tenth_record_may_be_timed():
    run = simulation(one(per_s=100.0, service_s=0.005), {"work": 1}, sample_every=10)
    passed(run, until_s=50.0)
    slot = run.processors("work")[0]
    assert slot["sampled"] == slot["served"] // 10
    assert slot["service_s"] / slot["sampled"] == pytest.approx(0.005, rel=0.2)


@settings(max_examples=40)
@given(number=st.integers(1, 300), zipf=st.sampled_from([0.0, 0.5, 1.0, 2.5, 30.0]))
def test_the_alias_table_gives_each_key_its_weight(number, zipf):
    keys = Keys(number=number, zipf=zipf)
    world = build(
        one(),
        {"work": 1},
        Workload(dispatch={"work": "by_key"}, keys={"work": keys}),
        np.random.default_rng(1),
        sample_every=1,
        buffer=1,
    )
    table, found = world.keys, np.zeros(number)
    for key, row in enumerate(table):
        found[key] += row["chance"] / number
        found[row["other"]] += (1 - row["chance"]) / number
    assert found == pytest.approx(keys.weights, abs=1e-12)
    assert np.all((table["chance"] >= 0) & (table["chance"] <= 1))

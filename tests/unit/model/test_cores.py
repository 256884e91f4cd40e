from dataclasses import replace

import pytest

import sojourn as sj
from sojourn.errors import TooFewCores
from sojourn.model.cores import computing, demand, slowed, stretched
from sojourn.model.network import mean_s, predict

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

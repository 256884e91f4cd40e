"""What a workload refuses, and what a rate is at a time."""

from math import inf, nan

import pytest

from sojourn.errors import BadWorkload
from sojourn.simulate.run import simulate
from sojourn.simulate.workload import Gaps, Keys, Rates, Service, Workload
from sojourn.topology import Arrival, Operator, Topology


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Service(shape="weibull"), "'weibull' is not a shape of service times; write"),
        (lambda: Service(shape="measured"), "some of 0 measured service times are negative"),
        (lambda: Service(shape="measured", times_s=(0.0, 0.0)), "all are 0"),
        (lambda: Service(shape="measured", times_s=(1.0, -1.0)), "of 2 measured service times"),
        (lambda: Service(shape="measured", times_s=(1.0, nan)), "NaN or infinite"),
        (lambda: Gaps(shape="weekly"), "'weekly' is not a shape of gaps; write one of renewal"),
        (lambda: Gaps(low=2.0, high=1.0), "gaps are 2.0 to 1.0 times the mean"),
        (lambda: Gaps(low=-1.0), "gaps are -1.0 to 2.0"),
        (lambda: Gaps(high=inf), "gaps are 0.0 to inf"),
        (lambda: Gaps(low=nan), "gaps are nan to 2.0"),
        (lambda: Gaps(low=0.0, high=0.0), "gaps are 0.0 to 0.0"),
        (lambda: Gaps(on_s=0.0), "bursts last 0.0 s, with pauses of 1.0 s"),
        (lambda: Gaps(off_s=-1.0), "bursts last 1.0 s, with pauses of -1.0 s"),
        (lambda: Gaps(off_s=inf), "bursts last 1.0 s, with pauses of inf s"),
        (lambda: Gaps(size=0), "the size of batches is 0; write 1 or more"),
        (lambda: Rates(()), "the rates do not begin at 0 s"),
        (lambda: Rates.steps((5, 1.0)), "do not begin at 0 s; add a point at 0"),
        (
            lambda: Rates.steps((0, -1.0)),
            "the rate at 0.0 s is -1.0 per second; write 0 or more",
        ),
        (lambda: Rates.steps((0, 1.0), (1, nan)), "the rate at 1.0 s is nan per second"),
        (lambda: Rates.steps((0, 1.0), (inf, 1.0)), "the rate at inf s is 1.0 per second"),
        (
            lambda: Rates.steps((0, 1), (9, 2), (5, 3)),
            "the times of a rate are not in order; sort them",
        ),
        (lambda: Keys(number=0), "0 keys with exponent 0.0"),
        (lambda: Keys(zipf=-0.1), "1000 keys with exponent -0.1"),
        (lambda: Keys(zipf=inf), "1000 keys with exponent inf"),
    ],
)
def test_what_cannot_be_says_so(make, said):
    with pytest.raises(BadWorkload) as caught:
        make()
    assert said in str(caught.value)


def test_a_hyperexponential_time_varies_at_least_as_an_exponential_one():
    steady = Topology(
        name="steady",
        arrivals=(Arrival(name="roots", per_s=1.0, into="work"),),
        operators=(Operator(name="work", service_s=0.5, service_scv=0.5),),
    )
    workload = Workload(service={"work": Service(shape="hyperexponential")})
    with pytest.raises(
        BadWorkload, match=r"work: scv is 0\.5, but a hyperexponential distribution"
    ):
        simulate(steady, {"work": 1}, roots=10, workload=workload)


def test_a_rate_goes_in_straight_lines_and_jumps_at_steps():
    ramp = Rates(((0.0, 0.0), (10.0, 20.0), (10.0, 5.0), (20.0, 5.0)))
    assert [ramp.at(second) for second in (0, 2.5, 10, 15, 20, 1e9)] == [0, 5, 5, 5, 5, 5]
    steps = Rates.steps((0, 6), (360, 12))
    assert [steps.at(second) for second in (0, 359.999, 360, 361)] == [6, 6, 12, 12]
    assert steps.times(2.0).at(360) == 24


def test_the_weights_of_keys_fall_as_their_exponent_says():
    assert Keys(number=4).weights == [0.25] * 4
    weights = Keys(number=3, zipf=1.0).weights
    assert sum(weights) == pytest.approx(1.0)
    assert weights[0] / weights[2] == pytest.approx(3.0)


@pytest.mark.parametrize(
    ("workload", "said"),
    [
        (Workload(service={"c": Service()}), "there is no operator 'c'; write one of a, b"),
        (Workload(dispatch={"c": "shared"}), "there is no operator 'c'"),
        (Workload(keys={"c": Keys()}), "there is no operator 'c'"),
        (Workload(gaps={"out": Gaps()}), "there is no arrival 'out'; write one of in"),
        (Workload(rates={"out": Rates(((0.0, 1.0),))}), "there is no arrival 'out'"),
    ],
)
def test_a_shape_for_what_is_not_there_is_refused(workload, said):
    topology = Topology(
        name="t",
        arrivals=(Arrival(name="in", per_s=1, into="a"),),
        operators=(Operator(name="a", service_s=0.1), Operator(name="b", service_s=0.1)),
    )
    with pytest.raises(BadWorkload, match=said):
        simulate(topology, {"a": 1, "b": 1}, roots=10, workload=workload)

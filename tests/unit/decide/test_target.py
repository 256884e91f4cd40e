import pytest

from sojourn.decide.target import MOST_PROCESSORS, Target, check_processors, reached_s
from sojourn.errors import BadTarget
from sojourn.model.network import PERCENTILES, predict
from sojourn.topology import Arrival, Operator, Topology


@pytest.mark.parametrize("statistic", ["mean", *PERCENTILES])
def test_a_target_is_written_as_it_is_said(statistic):
    assert str(Target(statistic, 0.25)) == f"{statistic} ≤ 0.25 s"


@pytest.mark.parametrize("statistic", ["p97", "median", "", None, "p100"])
def test_what_is_not_predicted_is_no_target(statistic):
    with pytest.raises(BadTarget, match="cannot be a target; write one of mean, p50, p90"):
        Target(statistic, 1.0)


@pytest.mark.parametrize("seconds", [float("nan"), float("inf"), "1", None, True, 10**400])
def test_what_is_no_time_is_no_target(seconds):
    with pytest.raises(BadTarget, match="is not a latency in seconds"):
        Target("mean", seconds)


@pytest.mark.parametrize("seconds", [0, -1, -0.0])
def test_a_target_is_above_nothing(seconds):
    with pytest.raises(BadTarget, match="write more than 0"):
        Target("mean", seconds)


@pytest.mark.parametrize("processors", [1, 22, MOST_PROCESSORS])
def test_a_number_of_processors_is_one_or_more(processors):
    check_processors(processors)


@pytest.mark.parametrize("processors", [0, -3, 1.0, True, "5", None])
def test_nothing_else_is_a_number_of_processors(processors):
    with pytest.raises(BadTarget, match="is not a valid number of processors; write 1 or more"):
        check_processors(processors)


def test_more_processors_than_there_are_anywhere_are_refused():
    with pytest.raises(BadTarget, match="too many; write 10000000 at most"):
        check_processors(MOST_PROCESSORS + 1)


def test_what_is_reached_is_the_statistic_asked_for():
    counter = Topology(
        name="counter",
        arrivals=(Arrival(name="lines", per_s=8, into="count"),),
        operators=(Operator(name="count", service_s=0.1),),
    )
    predicted = predict(counter, {"count": 1})
    assert reached_s(predicted, Target("mean", 1.0)) == predicted.mean_s
    assert reached_s(predicted, Target("p95", 1.0)) == predicted.percentiles_s["p95"]

from dataclasses import replace
from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sojourn as sj
from sojourn.errors import BadInput, CannotBeDone

VLD = sj.Topology(
    name="vld",
    arrivals=(sj.Arrival(name="frames", per_s=13, into="extract"),),
    operators=(
        sj.Operator(name="extract", service_s=0.50, emits={"match": 1}),
        sj.Operator(name="match", service_s=0.55, emits={"aggregate": 1}),
        sj.Operator(name="aggregate", service_s=0.02, transfer_s=0.003),
    ),
)
ALLOCATION = {"extract": 10, "match": 11, "aggregate": 1}


def pairs(measured, estimates=(1.0, 1.5, 2.0, 4.0), hops=3.0):
    return [sj.Pair(estimate_s=e, measured_s=measured(e), hops=hops) for e in estimates]


def test_a_factor_is_found_again():
    fitted = sj.fit(pairs(lambda e: 1.3 * e), form="factor")
    assert fitted.coefficients == pytest.approx((0.0, 1.3))
    assert (fitted.low_s, fitted.high_s) == (1.0, 4.0)


def test_a_time_per_hop_is_found_again():
    fitted = sj.fit(pairs(lambda e: e + 3 * 0.02), form="per_hop")
    assert fitted.per_hop_s == pytest.approx(0.02)
    assert fitted.coefficients == (0.0, 1.0)


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_a_polynomial_is_found_again(degree):
    coefficients = (0.1, 0.9, 0.05, 0.01)[: degree + 1]
    fitted = sj.fit(
        pairs(lambda e: sum(c * e**n for n, c in enumerate(coefficients))),
        form="polynomial",
        degree=degree,
    )
    assert fitted.coefficients == pytest.approx(coefficients, abs=1e-9)


def test_small_and_large_estimates_count_alike():
    """Least squares of absolute errors would ignore the fast allocations, which matter most."""
    near = [sj.Pair(estimate_s=0.01, measured_s=0.02), sj.Pair(estimate_s=10, measured_s=10)]
    factor = sj.fit(near, form="factor").coefficients[1]
    assert 1.05 < factor < 1.5


@pytest.mark.parametrize(
    ("form", "given_pairs", "degree", "said"),
    [
        ("cubic", pairs(lambda e: e), 2, "unknown form 'cubic'"),
        ("factor", [], 2, "no pairs"),
        ("factor", pairs(lambda _: nan), 2, "a number that is not positive"),
        ("factor", pairs(lambda _: -1.0), 2, "a number that is not positive"),
        ("per_hop", pairs(lambda e: e / 2), 2, "fit a factor instead"),
        ("polynomial", pairs(lambda e: e, (1.0, 1.0, 2.0)), 2, "2 different estimates"),
        ("polynomial", pairs(lambda e: e), 7, "the degree of the polynomial is 7"),
        ("polynomial", pairs(lambda e: 10 + (e - 3) ** 2), 2, "decreases somewhere"),
    ],
)
def test_what_makes_no_sense_is_refused(form, given_pairs, degree, said):
    with pytest.raises(BadInput, match=said):
        sj.fit(given_pairs, form=form, degree=degree)


@pytest.mark.parametrize(
    "wrong",
    [
        {"coefficients": (1.0,)},
        {"coefficients": (0.0, nan)},
        {"coefficients": (0.0, -1.0)},
        {"per_hop_s": -1.0},
        {"per_hop_s": inf},
        {"low_s": 2.0, "high_s": 1.0},
    ],
)
def test_a_calibration_that_cannot_be_is_refused(wrong):
    with pytest.raises(BadInput, match="fit it again"):
        sj.Calibration(**wrong)


def test_a_calibrated_prediction_says_so_and_scales_all_its_times():
    raw = sj.predict(VLD, ALLOCATION)
    calibration = sj.Calibration(coefficients=(0.0, 2.0), low_s=0.5, high_s=2.0)
    scaled = sj.predict(VLD, ALLOCATION, calibration=calibration)
    assert scaled.calibration is calibration
    assert not scaled.extrapolated
    assert scaled.mean_s == pytest.approx(2 * raw.mean_s)
    assert scaled.std_s == pytest.approx(2 * raw.std_s)
    assert scaled.percentiles_s["p99"] == pytest.approx(2 * raw.percentiles_s["p99"])
    parts = sum(o.visits * o.sojourn_s for o in scaled.operators.values())
    assert parts == pytest.approx(scaled.mean_s)


def test_a_time_per_hop_shifts_but_does_not_spread():
    raw = sj.predict(VLD, ALLOCATION)
    shifted = sj.predict(VLD, ALLOCATION, calibration=sj.Calibration(per_hop_s=0.1))
    assert shifted.mean_s == pytest.approx(raw.mean_s + 0.3)
    assert shifted.std_s == pytest.approx(raw.std_s, rel=1e-3)
    assert shifted.percentiles_s["p95"] == pytest.approx(
        raw.percentiles_s["p95"] + 0.3, rel=2e-3
    )


def test_extrapolation_is_never_silent():
    beyond = sj.Calibration(coefficients=(0.0, 1.1), low_s=5.0, high_s=6.0)
    assert sj.predict(VLD, ALLOCATION, calibration=beyond).extrapolated
    curve = replace(beyond, coefficients=(0.0, 1.0, 0.1))
    with pytest.raises(CannotBeDone, match=r"from 5 s to 6 s, which does not include 1\.12"):
        sj.predict(VLD, ALLOCATION, calibration=curve)


def test_nothing_takes_any_time_calibrated():
    idle = sj.Topology(
        name="idle",
        arrivals=(sj.Arrival(name="in", per_s=1, into="a"),),
        operators=(sj.Operator(name="a", service_s=0),),
    )
    assert sj.predict(idle, {"a": 1}, calibration=sj.Calibration()).mean_s == 0


@given(
    constant=st.floats(0, 1),
    slope=st.floats(0.1, 3),
    curve=st.floats(0, 1),
    measured_s=st.floats(0.1, 10),
)
def test_the_estimate_to_plan_for_measures_as_wanted(constant, slope, curve, measured_s):
    calibration = sj.Calibration(coefficients=(constant, slope, curve), low_s=0.5, high_s=5.0)
    if calibration(0.5) <= measured_s <= calibration(5.0):
        assert calibration(calibration.estimate_s(measured_s)) == pytest.approx(measured_s)
    else:
        with pytest.raises(CannotBeDone):
            calibration.estimate_s(measured_s)


def test_the_estimate_for_a_factor_is_a_division():
    assert sj.Calibration(coefficients=(0.0, 1.25)).estimate_s(1.0) == 0.8

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sojourn.model.lattice import Lattice

SCVS = (0.01, 0.1, 0.5, 0.9, 0.999, 1.001, 1.5, 2, 4, 10, 20)
RATIOS = (0.5, 0.9, 0.95, 0.99)


def gamma(mean_s, scv):
    return stats.gamma(1 / scv, scale=mean_s * scv)


def shared_out(lattice, known):
    """Return what the cumulated masses must be: the distribution averaged over each step."""
    edges = lattice.times_s
    fine = np.linspace(edges[:-1], edges[1:], 65)
    return np.trapezoid(known.cdf(fine), fine, axis=0) / lattice.step_s


@pytest.mark.parametrize("scv", SCVS)
@pytest.mark.parametrize("horizon_s", [8.0, 50.0])
def test_gamma_masses_are_those_of_the_gamma_distribution(scv, horizon_s):
    lattice, known = Lattice.up_to(horizon_s, 2048), gamma(1.0, scv)
    ours = np.cumsum(lattice.service(1.0, scv))
    # a pole at 0 makes the reference itself coarse in the first step
    np.testing.assert_allclose(ours[1:], shared_out(lattice, known)[1:], atol=1e-5)


def test_exponential_masses_are_those_of_the_exponential_distribution():
    lattice = Lattice.up_to(3.0, 512)
    ours = np.cumsum(lattice.service(0.7, 1.0))
    np.testing.assert_allclose(ours, shared_out(lattice, stats.expon(scale=0.7)), atol=1e-6)


@pytest.mark.parametrize("scv", [0.999999, 1.000001])
def test_a_gamma_distribution_that_is_all_but_exponential_is_all_but_the_same(scv):
    lattice = Lattice.up_to(8.0, 4096)
    ours, exponential = lattice.service(1.0, scv), lattice.service(1.0, 1.0)
    np.testing.assert_allclose(np.cumsum(ours), np.cumsum(exponential), atol=1e-6)


@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("scv", [*SCVS, 1])
def test_percentiles_of_a_service_are_good_to_a_thousandth(scv, ratio):
    known = gamma(2.0, scv)
    lattice = Lattice.up_to(known.ppf(1 - 1e-6), 4096)
    ours_s = lattice.percentile_s(lattice.service(2.0, scv), ratio)
    # what falls into the first half step is not told apart
    assert ours_s == pytest.approx(known.ppf(ratio), rel=1e-3, abs=lattice.step_s / 2)


@given(
    mean_s=st.floats(0.05, 2),
    scv=st.sampled_from([0, 1e-320, 1e-9, 0.2, 1, 3]),
    points=st.integers(50, 500),
)
def test_the_mean_stays_exact_however_coarse_the_lattice(mean_s, scv, points):
    lattice = Lattice.up_to(100 * mean_s, points)
    assert lattice.mean_s(lattice.service(mean_s, scv)) == pytest.approx(mean_s, rel=1e-9)


@pytest.mark.parametrize("scv", [0, 1, 0.3, 4])
def test_the_last_point_ends_at_the_horizon(scv):
    lattice = Lattice.up_to(1.7, 4096)
    known = gamma(1.0, scv) if scv else stats.uniform(0.99, 0.02)
    assert lattice.service(1.0, scv).sum() == pytest.approx(known.cdf(1.7), abs=1e-6)


def test_a_constant_on_a_point_is_all_there():
    masses = Lattice(0.25, 8).constant(0.75)
    np.testing.assert_allclose(masses, [0, 0, 0, 1, 0, 0, 0, 0], atol=1e-15)


def test_a_constant_between_two_points_is_shared_between_them():
    masses = Lattice(0.25, 8).constant(0.8)
    np.testing.assert_allclose(masses, [0, 0, 0, 0.8, 0.2, 0, 0, 0], atol=1e-15)


def test_what_lies_beyond_the_lattice_is_left_out():
    lattice = Lattice(0.25, 8)
    assert not lattice.constant(2.5).any()
    assert lattice.service(1e6, 1.0).sum() < 1e-5


@pytest.mark.parametrize("scv", [0, 1, 0.5, 20])
def test_no_time_at_all_falls_on_the_first_point(scv):
    assert Lattice(0.25, 8).service(0.0, scv).tolist() == [1, 0, 0, 0, 0, 0, 0, 0]


@pytest.mark.parametrize("scv", [1e-11, 1e-100, 1e-320])
def test_a_service_too_regular_to_tell_is_constant(scv):
    lattice = Lattice(0.25, 8)
    assert np.array_equal(lattice.service(0.8, scv), lattice.constant(0.8))


def test_who_does_not_wait_is_on_the_first_point():
    lattice = Lattice.up_to(20.0, 4096)
    masses = lattice.wait(0.4, 0.2)
    assert masses[0] == pytest.approx(0.6, abs=0.005)
    assert lattice.mean_s(masses) == pytest.approx(0.2)
    # given that a record waits, it does so for 0.5 s: 1 in e² longer than a second
    assert lattice.percentile_s(masses, 1 - 0.4 * np.exp(-2)) == pytest.approx(1, rel=1e-3)


@pytest.mark.parametrize(("probability", "mean_s"), [(0, 0), (0.5, 0), (0, 1), (0.5, 5e-324)])
def test_no_wait_is_no_time(probability, mean_s):
    assert Lattice(0.25, 4).wait(probability, mean_s).tolist() == [1, 0, 0, 0]


@pytest.mark.parametrize("ratio", RATIOS)
def test_two_equal_exponentials_add_up_to_an_erlang_distribution(ratio):
    lattice = Lattice.up_to(20.0, 4096)
    one = lattice.service(1.0, 1.0)
    ours_s = lattice.percentile_s(lattice.add(one, one), ratio)
    assert ours_s == pytest.approx(stats.gamma(2).ppf(ratio), rel=1e-3)


def test_two_exponentials_add_up_to_a_hypoexponential_distribution():
    lattice = Lattice.up_to(20.0, 4096)
    summed = lattice.add(lattice.service(1.0, 1.0), lattice.service(0.25, 1.0))
    ends_s = lattice.times_s[:-1] + lattice.step_s / 2
    exact = 1 - (np.exp(-ends_s) - 0.25 * np.exp(-4 * ends_s)) / 0.75
    np.testing.assert_allclose(np.cumsum(summed), exact, atol=1e-4)


def test_constants_add_up():
    lattice = Lattice(0.25, 8)
    summed = lattice.add(lattice.constant(0.5), lattice.constant(0.75))
    np.testing.assert_allclose(summed, lattice.constant(1.25), atol=1e-15)


def test_adding_nothing_changes_nothing():
    lattice = Lattice.up_to(5.0, 300)
    masses = lattice.service(1.0, 2.0)
    np.testing.assert_allclose(lattice.add(masses, lattice.constant(0.0)), masses, atol=1e-15)


def test_a_sum_that_leaves_the_lattice_does_not_come_back_at_its_front():
    lattice = Lattice(1.0, 8)
    assert not lattice.add(lattice.constant(5.0), lattice.constant(6.0)).round(12).any()


@given(
    means_s=st.tuples(st.floats(0, 5), st.floats(0, 5)),
    scvs=st.tuples(st.floats(0, 20), st.floats(0, 20)),
)
def test_no_rounding_leaves_a_sum_below_nothing(means_s, scvs):
    """Powers of cumulated masses would blow up what is below 0, or above 1."""
    lattice = Lattice.up_to(10.0, 256)
    one, other = map(lattice.service, means_s, scvs)
    summed = lattice.add(one, other)
    assert summed.min() >= 0
    assert summed.sum() <= 1 + 1e-9


@pytest.mark.parametrize("scv", [0.25, 1, 2])
def test_the_deviation_is_that_of_the_distribution(scv):
    lattice = Lattice.up_to(60.0, 4096)
    assert lattice.std_s(lattice.service(1.0, scv)) == pytest.approx(np.sqrt(scv), rel=1e-3)


def test_a_percentile_of_no_time_is_none():
    lattice = Lattice(0.25, 8)
    assert lattice.percentile_s(lattice.constant(0.0), 0.99) == 0


def test_percentiles_of_a_constant_are_at_most_a_step_off():
    lattice = Lattice.up_to(2.0, 512)
    for ratio in RATIOS:
        ours_s = lattice.percentile_s(lattice.constant(1.0), ratio)
        assert ours_s == pytest.approx(1.0, abs=lattice.step_s)

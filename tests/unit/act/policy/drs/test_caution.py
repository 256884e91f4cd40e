import pytest

from sojourn.act.policy.drs.caution import Caution, QuietHours
from sojourn.errors import BadInput


@pytest.mark.parametrize(
    "fields",
    [
        {"t_ra_s": -1},
        {"t_ra_s": float("nan")},
        {"margin": -0.1},
        {"confirm_s": -1},
        {"disturbed": 0},
        {"disturbed": 1.5},
        {"least_gain": float("inf")},
    ],
)
def test_nonsense_is_refused_by_name(fields):
    with pytest.raises(BadInput, match=next(iter(fields))):
        Caution(**fields)


def test_t_ra_may_be_forever():
    assert Caution(t_ra_s=float("inf")).t_ra_s == float("inf")


def test_the_less_is_known_the_more_is_kept():
    caution = Caution(margin=0.1, sigmas=4.0)
    assert caution.given_for(0.01) == caution.kept_for(0.01) == 0.1
    assert (caution.given_for(0.2), caution.kept_for(0.2)) == (0.2, 0.8)
    assert caution.kept_for(9.0) == 1.0


@pytest.mark.parametrize(("since_s", "until_s"), [(-1, 5), (0, 90_000), (60, 60)])
def test_hours_that_are_none_are_refused(since_s, until_s):
    with pytest.raises(BadInput):
        QuietHours(since_s, until_s)

import pytest

from sojourn.act.choice import PolicyChoice, read_choice, read_choices
from sojourn.act.policy import policy
from sojourn.act.policy.drs.caution import QuietHours
from sojourn.act.policy.threshold import Threshold
from sojourn.decide.target import Target
from sojourn.errors import BadInput

TARGET = Target("p95", 3.0)


def test_a_policy_is_told_what_was_given_and_keeps_the_rest():
    plain = policy("drs", target=TARGET, most=9)
    assert PolicyChoice(name="drs").made(TARGET, 9) == (
        plain,
        "drs, p95 ≤ 3 s, at most 9 processors",
    )
    text = "drs:t_ra_s=30s:drain_s=20s:quiet=00:00-01:00:quiet=02:00-03:00:forecast=yes"
    told, said = read_choice(text).made(TARGET, None)
    assert (told.drain_s, told.forecast, told.caution.t_ra_s) == (20.0, True, 30.0)
    assert told.caution.quiet == (QuietHours(0, 3600), QuietHours(7200, 10800))
    assert told.caution.margin == plain.caution.margin
    assert said == (
        "drs, p95 ≤ 3 s, quiet=00:00-01:00 and 02:00-03:00, drain_s=20s, forecast=yes"
    )


def test_what_it_is_told_counts_and_not_what_it_would_choose():
    told, said = read_choice("drs:t_ra_s=30").made(TARGET, None, every_s=1.0, pauses=False)
    assert (told.caution.t_ra_s, told.drain_s) == (30.0, 5.0)
    assert said == "drs, p95 ≤ 3 s, drain_s=5s"


def test_several_are_named_each_with_its_own_options():
    several = read_choices(
        "threshold:utilisation=0.6, threshold:utilisation=0.8:up_by=2,static"
    )
    assert list(several) == [
        "threshold:utilisation=0.6", "threshold:utilisation=0.8:up_by=2", "static",
    ]  # fmt: skip
    made = [choice.made(TARGET, 5)[0] for choice in several.values()]
    assert made[:2] == [
        Threshold(most=5, utilisation=0.6),
        Threshold(most=5, utilisation=0.8, up_by=2),
    ]
    assert next(iter(read_choices(None))) == "drs"


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ("oracle", BadInput, "unknown policy 'oracle'; write one of "),
        ("ds2:margin=1", BadInput, "'ds2:margin=1': ds2 has no option 'margin'; it has sca"),
        ("static:margin=1", BadInput, "static has no option 'margin'; it has no options"),
        ("ds2:warm_up=", BadInput, "'warm_up=' is not OPTION=VALUE"),
        ("ds2:warm_up=x", BadInput, "'ds2:warm_up=x': 'x' is not a whole number"),
        ("ds2:warm_up=1:warm_up=2", BadInput, "warm_up is given 2 times; write it once"),
        ("ds2:warm_up=-1", BadInput, "ds2: warm_up is -1 observations; write 0 or more"),
        ("math:pi", BadInput, "math:pi is not a policy; name a function or a class"),
        ("math", BadInput, "'math'"),
        ("os.path", BadInput, "os.path is not a policy"),
    ],
)
def test_what_cannot_be_is_refused_by_name(text, error, said):
    with pytest.raises(error, match=said):
        read_choice(text).made(TARGET, None)

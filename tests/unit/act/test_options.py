from dataclasses import dataclass, field
from typing import Annotated, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sojourn.act.options import (
    Option,
    PolicyChoice,
    kind_text,
    options,
    read_choice,
    read_choices,
    read_value,
    value_text,
    with_options,
)
from sojourn.act.policy import names, policy
from sojourn.act.policy.drs.caution import QuietHours
from sojourn.act.policy.threshold import Threshold
from sojourn.decide.target import Target
from sojourn.errors import BadInput

TARGET = Target("p95", 3.0)


@dataclass(frozen=True)
class Inside:
    depth: Annotated[int, "how deep"] = 3
    hidden: int = 4


@dataclass(frozen=True)
class Outside:
    width: Annotated[float, "how wide"] = 1.0
    inside: Inside = field(default_factory=Inside)
    several: Annotated[tuple[int, ...], "which"] = field(default_factory=tuple)
    plain: str = "x"

    def __post_init__(self):
        assert self.width <= self.inside.depth


def test_fields_with_a_meaning_are_options_wherever_they_are():
    there = options(Outside(width=2.0))
    assert list(there) == ["width", "depth", "several"]
    assert (there["width"].value, there["width"].default) == (2.0, 1.0)
    assert (there["depth"].type, there["depth"].meaning) == (int, "how deep")
    assert there["several"].default == ()


def test_what_is_no_record_has_no_options():
    assert options(len) == options(Outside) == {}
    assert with_options(len, {"width": 2}) is len


def test_values_are_set_together_and_the_rest_stays():
    assert with_options(Outside(plain="y"), {"width": 9.0, "depth": 10}) == Outside(
        width=9.0, inside=Inside(depth=10), plain="y"
    )
    same = Outside()
    assert with_options(same, {}) is same


@pytest.mark.parametrize("name", names())
def test_an_option_of_ours_is_said_in_one_line_and_can_be_set_to_its_default(name):
    made = policy(name, target=TARGET)
    there = options(made)
    assert all(option.meaning and "\n" not in option.meaning for option in there.values())
    assert all(option.value == option.default for option in there.values())
    assert with_options(made, {n: option.default for n, option in there.items()}) == made


def test_only_where_changes_pause_nothing_drs_waits_for_less():
    usual = policy("drs", target=TARGET, every_s=1.0)
    soon = policy("drs", target=TARGET, every_s=2.0, pauses=False)
    assert usual == policy("drs", target=TARGET) == policy("drs", target=TARGET, pauses=False)
    assert (soon.caution.t_ra_s, soon.drain_s) == (10.0, 10.0)


HOURS = (QuietHours(0, 3600), QuietHours(7200, 10800))


def option(kind, name="x"):
    return Option(name=name, type=kind, meaning="", default=None, value=None)


@pytest.mark.parametrize(
    ("kind", "texts", "value"),
    [
        (float, ["0.2"], 0.2),
        (float, ["inf"], float("inf")),
        (int, [" 3 "], 3),
        (bool, ["Yes"], True),
        (bool, ["off"], False),
        (str, ["as it is"], "as it is"),
        (float | None, ["none"], None),
        (float | None, ["2"], 2.0),
        (Literal["a", "b"], ["b"], "b"),
        (tuple[QuietHours, ...], ["00:00-01:00", "02:00-03:00"], HOURS),
    ],
)
def test_a_value_is_read_by_its_type(kind, texts, value):
    assert read_value(option(kind), texts) == value


@pytest.mark.parametrize(
    ("kind", "texts", "said"),
    [
        (float, ["nan"], "'nan' is not a number; write, for example, 0.2"),
        (float, ["1", "2"], "x is given 2 times; write it once"),
        (int, ["1.5"], "'1.5' is not a whole number; write, for example, 3"),
        (bool, ["perhaps"], "'perhaps' is not valid; write yes or no"),
        (Literal["a", "b"], ["c"], "'c' is not one of a, b; write one of them"),
        (tuple[QuietHours, ...], ["noon"], "'noon' is not FROM-UNTIL"),
        (bytes, ["x"], "is not supported; make it a number or text"),
    ],
)
def test_what_is_not_of_the_type_is_refused_with_the_way_out(kind, texts, said):
    with pytest.raises(BadInput, match=said):
        read_value(option(kind), texts)


@given(st.floats(min_value=0))
def test_times_are_written_as_they_are_read(seconds):
    delay = option(float | None, "delay_s")
    again = read_value(delay, [value_text(delay, seconds)])
    assert again == pytest.approx(seconds, rel=1e-5, abs=1e-300)


def test_a_time_has_a_unit_or_is_in_seconds():
    delay = option(float, "delay_s")
    assert [read_value(delay, [text]) for text in ("500ms", "2m", "3")] == [0.5, 120.0, 3.0]
    with pytest.raises(BadInput, match="'soon' is not a time; write 500ms"):
        read_value(delay, ["soon"])


def test_what_people_write_is_told():
    kinds = (float, int, bool, float | None, Literal["a", "b"])
    assert [kind_text(option(kind)) for kind in kinds] == [
        "NUMBER", "WHOLE NUMBER", "yes|no", "NUMBER|none", "a|b",
    ]  # fmt: skip
    hours = option(tuple[QuietHours, ...])
    assert kind_text(hours) == "FROM-UNTIL, may be repeated"
    assert value_text(hours, HOURS) == "00:00-01:00 and 02:00-03:00"
    assert value_text(hours, ()) == value_text(option(float | None), None) == "none"


@pytest.mark.parametrize("name", names())
def test_every_option_of_ours_can_be_written(name):
    there = options(policy(name, target=Target("mean", 1.0)))
    for each in there.values():
        text = value_text(each, each.default)
        if each.default != ():
            assert read_value(each, [text]) == each.default


# -- a policy by name --------------------------------------------------------------------------


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
    assert said == "drs, p95 ≤ 3 s, t_ra_s=30s"


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

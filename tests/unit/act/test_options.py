from dataclasses import dataclass, field
from typing import Annotated, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sojourn.act.options import Option, kind_text, options, read_value, value_text, with_options
from sojourn.act.policy import names, policy
from sojourn.act.policy.drs.caution import QuietHours
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

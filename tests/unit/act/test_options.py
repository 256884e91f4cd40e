from dataclasses import dataclass, field
from typing import Annotated

import pytest

from sojourn.act.options import options, with_options
from sojourn.act.policy import names, policy
from sojourn.decide.target import Target

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

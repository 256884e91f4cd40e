"""Checks of single values; their errors name the place, the value and the remedy."""

from collections import Counter
from collections.abc import Iterable, Mapping
from math import inf

from sojourn.errors import BadNumber, BadTopology
from sojourn.text import shown

# The same as the largest load of a topology.
_MOST_PROCESSORS = 10**9
# No real rate, time or mean number is outside this range; one in the wrong unit may be.
_SMALLEST, _LARGEST = 1e-18, 1e18


def name(section: str, value: object) -> str:
    """Return the place of *value* in *section* after checking that it is a valid name."""
    if not isinstance(value, str) or not value.strip():
        problem = f"{shown(value)} is not a name"
        raise BadTopology(section, problem, "write text, in quotes if necessary")
    unusable = any(letter in value for letter in ",=:") or not value.isprintable()
    if unusable or value != value.strip():
        raise BadTopology(
            f"{section}.{value}",
            f"{shown(value)} contains a comma, an equals sign, a colon, a control character, "
            "or leading or trailing blanks",
            "remove them: allocations are written name=5,other=3",
        )
    return f"{section}.{value}"


def number(place: str, value: object) -> None:
    """Check that *value* is 0 or a positive number within the allowed range."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadTopology(place, f"{shown(value)} is not a number", "write 0 or more")
    if value == 0 or _SMALLEST <= value <= _LARGEST:
        return
    if not value > 0 or value == inf:
        raise BadNumber(
            place, f"{shown(value)} is negative, NaN or infinite", "write 0 or more"
        )
    way_out = f"write 0, or {_SMALLEST:g} to {_LARGEST:g}; check the unit"
    raise BadNumber(place, f"{shown(value)} is out of range", way_out)


def numbers(place: str, values: object, *, example: str) -> None:
    """Check that *values* maps valid names to numbers that pass `number`."""
    if not isinstance(values, Mapping):
        problem = f"{shown(values)} does not map operators to numbers"
        raise BadTopology(place, problem, f"write {example}")
    for target, value in values.items():
        number(name(place, target), value)


def count(place: str, value: object) -> None:
    """Check that *value* is a whole number, 1 or more."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise BadTopology(place, f"{shown(value)} is not a whole number", "write 1 or more")
    if value < 1:
        raise BadNumber(place, f"{shown(value)} is below 1", "write 1 or more")
    if value > _MOST_PROCESSORS:
        problem = f"{shown(value)} is more than a billion"
        raise BadNumber(place, problem, "write a smaller number")


def choice(place: str, value: object, choices: tuple[str, ...]) -> None:
    """Check that *value* is one of *choices*."""
    if value not in choices:
        way_out = f"write {' or '.join(choices)}"
        raise BadTopology(place, f"{shown(value)} is not a valid value", way_out)


def distinct(section: str, names: Iterable[str]) -> None:
    """Check that no name in *section* occurs twice."""
    for value, times in Counter(names).items():
        if times > 1:
            place, problem = f"{section}.{value}", f"the name occurs {times} times"
            raise BadTopology(place, problem, "rename all but one")


def known(place: str, targets: Iterable[str], operators: Mapping[str, object]) -> None:
    """Check that all *targets* are names of *operators*."""
    for target in targets:
        if target not in operators:
            names = ", ".join(list(operators)[:20])
            raise BadTopology(
                f"{place}.{target}",
                f"there is no operator {shown(target)}",
                f"add it, or write one of {names}",
            )

"""Options of a policy: the annotated fields of its frozen dataclass, and their values as text.

    margin: Annotated[float, "extra load to plan for, as a fraction"] = 0.15

is an option; the string is its meaning. Fields of nested dataclasses are options too.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass, replace
from math import isnan
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from sojourn.act.policy import DEFAULT, Policy, names, policy
from sojourn.act.policy.drs.caution import QuietHours
from sojourn.decide.target import Target
from sojourn.errors import BadInput
from sojourn.measure.duration import read_duration_s
from sojourn.text import shown

Record = TypeVar("Record")
_YES_NO = {"yes": True, "true": True, "on": True, "no": False, "false": False, "off": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """A field that users can set: its type, meaning, default and current value."""

    name: str
    type: Any
    meaning: str
    default: object
    value: object


def options(record: object) -> dict[str, Option]:
    """Return the options of a policy by name, in the order of their declaration.

    >>> from sojourn.act.policy.ds2 import Ds2
    >>> list(options(Ds2()))
    ['scaling_factor', 'warm_up', 'activation', 'target_rate_ratio']
    """
    if not is_dataclass(record) or isinstance(record, type):
        return {}
    found: dict[str, Option] = {}
    hints = get_type_hints(type(record), include_extras=True)
    for field in fields(record):
        value, hint = getattr(record, field.name), hints[field.name]
        metadata = getattr(hint, "__metadata__", ())
        meaning = next((each for each in metadata if isinstance(each, str)), None)
        if meaning is None:
            found |= options(value)
        else:
            found[field.name] = Option(
                name=field.name,
                type=get_args(hint)[0],
                meaning=meaning,
                default=_default(field),
                value=value,
            )
    return found


def with_options(record: Record, values: Mapping[str, object]) -> Record:
    """Return the policy with new *values* of options.

    Each dataclass gets all of its values in one step, because some are only valid together.

    >>> from sojourn.act.policy.ds2 import Ds2
    >>> with_options(Ds2(), {"warm_up": 3}).warm_up
    3
    """
    there = options(record)
    changed: dict[str, object] = {}
    for field in fields(record) if there else ():  # type: ignore[arg-type]
        inside = getattr(record, field.name)
        if field.name in there:
            if field.name in values:
                changed[field.name] = values[field.name]
        elif options(inside).keys() & values.keys():
            changed[field.name] = with_options(inside, values)
    return replace(record, **changed) if changed else record  # type: ignore[type-var]


def _default(field: Field[Any]) -> object:
    return field.default if field.default_factory is MISSING else field.default_factory()


@dataclass(frozen=True, slots=True)
class _Kind:
    """Description and parser of the values of a type."""

    text: str
    read: Callable[[str], object]


def read_value(option: Option, texts: Sequence[str]) -> object:
    """Parse the value of an option from *texts*: one text, or several for a tuple.

    Raise `BadInput` if a text is not valid.

    >>> delay = Option(name="delay_s", type=float, meaning="", default=9.0, value=9.0)
    >>> read_value(delay, ["500ms"]), read_value(delay, ["3"])
    (0.5, 3.0)
    """
    several = get_origin(option.type) is tuple
    if len(texts) > 1 and not several:
        raise BadInput(f"{option.name} is given {len(texts)} times; write it once")
    values = tuple(_kind(option).read(text.strip()) for text in texts)
    return values if several else values[0]


def value_text(option: Option, value: object) -> str:
    """Return the text of a value for the command line.

    >>> value_text(Option(name="t_s", type=float, meaning="", default=1.0, value=1.0), 0.5)
    '0.5s'
    """
    if isinstance(value, tuple):
        return " and ".join(map(str, value)) or "none"
    if kind_text(option) == "yes|no":
        return "yes" if value else "no"
    if isinstance(value, float):
        number = f"{value:g}"
        plain = number.replace(".", "").isdigit()  # and not 1e+06, or inf
        return f"{number}s" if plain and option.name.endswith("_s") else number
    return "none" if value is None else str(value)


def kind_text(option: Option) -> str:
    """Return a placeholder for the values of an option, for help texts.

    >>> kind_text(Option(name="t_s", type=float | None, meaning="", default=None, value=None))
    'TIME|none'
    """
    several = ", may be repeated" * (get_origin(option.type) is tuple)
    return f"{_kind(option).text}{several}"


def _kind(option: Option) -> _Kind:
    kind = get_args(option.type)[0] if get_origin(option.type) is tuple else option.type
    return _kind_of(kind, seconds=option.name.endswith("_s"))


def _kind_of(kind: object, *, seconds: bool) -> _Kind:
    if get_origin(kind) is Literal:
        known = get_args(kind)
        return _Kind("|".join(known), lambda text: _read_one_of(text, known))
    if get_origin(kind) in (Union, UnionType):
        inner = next(each for each in get_args(kind) if each is not NoneType)
        there = _kind_of(inner, seconds=seconds)
        return _Kind(
            f"{there.text}|none", lambda text: None if text == "none" else there.read(text)
        )
    if kind is float and seconds:
        return _Kind("TIME", _read_seconds)
    if kind not in _KINDS:
        raise BadInput(f"an option of type {kind} is not supported; make it a number or text")
    return _KINDS[kind]


def _read_one_of(text: str, known: Sequence[str]) -> str:
    if text not in known:
        raise BadInput(f"{shown(text)} is not one of {', '.join(known)}; write one of them")
    return text


def _read_yes_no(text: str) -> bool:
    if text.lower() not in _YES_NO:
        raise BadInput(f"{shown(text)} is not valid; write yes or no")
    return _YES_NO[text.lower()]


def _read_seconds(text: str) -> float:
    try:
        return _read_number(text)
    except BadInput:
        return read_duration_s(text)


def _read_number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if isnan(number):
        raise BadInput(f"{shown(text)} is not a number; write, for example, 0.2")
    return number


def _read_whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise BadInput(f"{shown(text)} is not a whole number; write, for example, 3") from None


_KINDS: dict[object, _Kind] = {
    bool: _Kind("yes|no", _read_yes_no),
    float: _Kind("NUMBER", _read_number),
    int: _Kind("WHOLE NUMBER", _read_whole),
    str: _Kind("TEXT", str),
    QuietHours: _Kind("FROM-UNTIL", QuietHours.read),
}


@dataclass(frozen=True, slots=True)
class Setting:
    """An option of a policy with its value as text."""

    source: str
    """Where it was given, for error messages."""
    option: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyChoice:
    """The name of a policy and its settings, not yet validated."""

    name: str
    settings: tuple[Setting, ...] = ()

    def made(
        self,
        target: Target,
        most: int | None,
        *,
        every_s: float | None = None,
        pauses: bool = True,
    ) -> tuple[Policy, str]:
        """Return the policy, and a line with its name, goal and changed options.

        Raise `BadInput` for an unknown option or an invalid value.

        >>> read_choice("drs:forecast=yes").made(Target("p95", 3.0), 20)[1]
        'drs, p95 ≤ 3 s, at most 20 processors, forecast=yes'
        """
        plain = policy(self.name, target=target, most=most, every_s=every_s, pauses=pauses)
        before = options(plain)
        chosen = with_options(plain, self._values(before))
        changed = [
            f"{option.name}={value_text(option, option.value)}"
            for option in options(chosen).values()
            if option.value != before[option.name].value
        ]
        most_text = [] if most is None else [f"at most {most} processors"]
        return chosen, ", ".join([self.name, str(target), *most_text, *changed])

    def _values(self, there: dict[str, Option]) -> dict[str, object]:
        given = defaultdict[str, list[Setting]](list)
        for setting in self.settings:
            if setting.option not in there:
                known = (
                    f"it has {', '.join(there)} (`sojourn policies {self.name}`)"
                    if there
                    else "it has no options, so leave it out"
                )
                raise BadInput(
                    f"{setting.source}: {self.name} has no option {shown(setting.option)}; "
                    f"{known}"
                )
            given[setting.option].append(setting)
        values: dict[str, object] = {}
        for name, settings in given.items():
            try:
                values[name] = read_value(there[name], [setting.text for setting in settings])
            except BadInput as error:
                raise BadInput(f"{settings[-1].source}: {error}") from error
        return values


def read_choices(text: str | None) -> dict[str, PolicyChoice]:
    """Parse policies such as `drs,threshold:utilisation=0.6`; None means all policies.

    >>> list(read_choices("ds2, drs,ds2"))
    ['ds2', 'drs']
    """
    if text is None:
        every = sorted(names(), key=lambda name: name != DEFAULT)
        return {name: PolicyChoice(name=name) for name in every}
    return {part.strip(): read_choice(part.strip()) for part in text.split(",")}


def read_choice(text: str) -> PolicyChoice:
    """Parse a policy such as `threshold:utilisation=0.6:tolerance=0.2`.

    >>> read_choice("ours.policies:calm:patience_s=3s").name
    'ours.policies:calm'
    """
    name, *settings = re.split(r":(?=\s*\w+\s*=)", text)
    given = tuple(read_setting(shown(text), each) for each in settings)
    return PolicyChoice(name=name, settings=given)


def read_setting(source: str, text: str) -> Setting:
    """Parse a setting such as `margin=0.2`; *source* is named in errors."""
    option, equals, value = (part.strip() for part in text.partition("="))
    if not equals or not option or not value:
        raise BadInput(
            f"{source}: {shown(text)} is not OPTION=VALUE; write, for example, margin=0.2"
        )
    return Setting(source, option, value)

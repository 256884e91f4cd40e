"""The options of a policy: the fields of its frozen dataclass that have a description.

    margin: Annotated[float, "extra load to plan for, as a fraction"] = 0.15

is an option. Fields of nested dataclasses are options too.
"""

from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass, replace
from typing import Any, TypeVar, get_args, get_type_hints

__all__ = ["Option", "options", "with_options"]

Record = TypeVar("Record")


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """A field that users may set: its type, meaning, default and current value."""

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

    All are set at once, because some are only valid together.

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

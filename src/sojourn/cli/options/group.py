"""Groups of options: declared once, passed to a command as one value.

    def read_target(*, target_mean: … = None, target_p95: … = None) -> Target | None: …

    def plan(*, target: Annotated[Target | None, Group(read_target)], …) -> None: …

has the options `--target-mean` and `--target-p95` in place of `target`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from inspect import Parameter, signature
from typing import Any


@dataclass(frozen=True, slots=True)
class Group:
    """A group of options: the parameters of *read*, which turns them into one value."""

    read: Callable[..., Any]


def expanded(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return *command* with each group replaced by its options.

    typer reads the options from the signature, so the result has one in which the parameters
    of the group stand in place of the group. A group may contain groups.
    """
    given, groups = list[Parameter](), dict[str, Callable[..., Any]]()
    for parameter in signature(command).parameters.values():
        group = _group(parameter.annotation)
        if group is None:
            given.append(parameter.replace(kind=Parameter.KEYWORD_ONLY))
        else:
            groups[parameter.name] = expanded(group.read)
            given += signature(groups[parameter.name]).parameters.values()
    if not groups:
        return command

    @wraps(command)
    def read_first(**values: object) -> object:
        for name, read in groups.items():
            own = signature(read).parameters
            values[name] = read(**{option: values.pop(option) for option in own})
        return command(**values)

    read_first.__signature__ = signature(command).replace(parameters=given)  # type: ignore[attr-defined]
    return read_first


def option_names(group: object) -> tuple[str, ...]:
    """Return the names of the options of a group; empty for anything else.

    >>> from sojourn.cli.options.kafka import KafkaOptions
    >>> option_names(KafkaOptions)
    ('kafka_option', 'kafka_options')
    """
    found = _group(group)
    return () if found is None else tuple(signature(expanded(found.read)).parameters)


def _group(annotation: object) -> Group | None:
    metadata = getattr(annotation, "__metadata__", ())
    return next((each for each in metadata if isinstance(each, Group)), None)

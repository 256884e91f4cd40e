"""Checks of what an application declares: names, flags, lengths of id windows, functions."""

import inspect
import re
from collections.abc import Sequence

from sojourn.errors import BadApplication
from sojourn.text import shown

# A Kafka topic is named after application and stream; Kafka allows these characters, and
# limits the length.
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}")
# Only arguments of the second kind have to be called as their column.
_BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def check_name(section: str, name: object) -> str:
    """Return the place of *name* in *section* after checking that it is a valid name."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise BadApplication(
            section,
            f"{shown(name)} is not a valid name",
            "use at most 100 letters A to Z, digits and . _ - (it names Kafka topics)",
        )
    return f"{section}.{name}"


def check_window(place: str, window: object) -> int:
    """Return *window* after checking that it is a positive number of ids."""
    if not isinstance(window, int) or isinstance(window, bool) or window < 1:
        raise BadApplication(
            place, f"{shown(window)} is not a number of ids", "write 1 or more"
        )
    return window


def check_flag(place: str, flag: object, way_out: str = "write True or False") -> bool:
    """Return *flag* after checking that it is a bool."""
    if not isinstance(flag, bool):
        raise BadApplication(place, f"{shown(flag)} is neither True nor False", way_out)
    return flag


def check_function(
    place: str,
    function: object,
    arguments: Sequence[str],
    *,
    columns: Sequence[str] = (),
    emits: bool,
) -> None:
    """Raise `BadApplication` unless *function* takes *arguments*, and yields if it *emits*.

    The last arguments are *columns* and must have their names: they are passed by position, so
    a different name suggests that the function expects another column. A function that emits
    nothing need not be a generator.
    """
    _check_plain(place, function, "put @app.operator(…) before a def")
    yields = inspect.isgeneratorfunction(function)
    if emits and not yields:
        raise BadApplication(
            place,
            "emits= is given, but the function never yields",
            "yield each record, as a tuple, or leave emits= out",
        )
    if yields and not emits:
        way_out = "give the columns of its records in emits="
        raise BadApplication(place, "the function yields, but emits= is not given", way_out)
    _check_arguments(place, function, arguments)
    _check_names(place, function, columns, before=len(arguments) - len(columns))


def check_set_up(place: str, set_up: object) -> None:
    """Raise `BadApplication` unless *set_up* is callable without arguments."""
    _check_plain(place, set_up, "give the function itself, not what it returns")
    _check_arguments(place, set_up, ())


def check_samples(place: str, samples: object) -> None:
    """Raise `BadApplication` unless *samples* is callable with a seed."""
    _check_plain(place, samples, "give a function of a seed that yields records")
    _check_arguments(place, samples, ("seed",))


def _check_plain(place: str, function: object, way_out: str) -> None:
    if not callable(function):
        raise BadApplication(place, f"{shown(function)} is not a function", way_out)
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        problem = "it is async, which is not supported"
        raise BadApplication(place, problem, "write def instead of async def")


def _check_names(place: str, function: object, columns: Sequence[str], *, before: int) -> None:
    """Raise `BadApplication` if an argument does not have the name of its column."""
    try:
        parameters = inspect.signature(function).parameters.values()  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return
    taken = [each for each in parameters if each.kind in _BY_POSITION]
    for argument, column in zip(taken[before:], columns, strict=False):
        name = argument.name
        if argument.kind == argument.POSITIONAL_OR_KEYWORD and not _is_called(name, column):
            raise BadApplication(
                place,
                f"its argument {shown(name)} gets the column {shown(column)}: arguments are "
                f"passed in the order of the columns, {', '.join(columns)}",
                f"call it {column}, or _{column} if the function does not use it",
            )


def _is_called(name: str, column: str) -> bool:
    """Return whether the name of an argument matches its column.

    >>> [_is_called(name, "class") for name in ("class_", "Class", "_", "_unused", "word")]
    [True, True, True, True, False]
    >>> _is_called("order_id", "order id")
    True
    """
    if name.startswith("_") or not column.isidentifier():
        return True
    return name.rstrip("_").casefold() == column.rstrip("_").casefold()


def _check_arguments(place: str, function: object, arguments: Sequence[str]) -> None:
    try:
        signature = inspect.signature(function)  # type: ignore[arg-type]
    except (TypeError, ValueError):  # some functions written in C have no signature
        return
    try:
        signature.bind(*arguments)
    except TypeError as error:
        given = ", ".join(arguments) or "nothing"
        raise BadApplication(
            place,
            f"it takes {signature}, but is called with ({given}): {error}",
            f"let it take {len(arguments)} arguments",
        ) from error

"""Checks of an operator's function, before anything starts."""

import inspect
from collections.abc import Sequence

from sojourn.errors import BadApplication
from sojourn.topology.check import shown

__all__ = ["check_function", "check_samples", "check_set_up"]


def check_function(
    place: str, function: object, arguments: Sequence[str], *, emits: bool
) -> None:
    """Raise `BadApplication` unless *function* takes *arguments*, and yields if it *emits*.

    A function that emits nothing need not be a generator.
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


def check_set_up(place: str, set_up: object) -> None:
    """Raise `BadApplication` unless *set_up* can be called without arguments."""
    _check_plain(place, set_up, "give the function itself, not what it returns")
    _check_arguments(place, set_up, ())


def check_samples(place: str, samples: object) -> None:
    """Raise `BadApplication` unless *samples* can be called with a seed."""
    _check_plain(place, samples, "give a function of a seed that yields records")
    _check_arguments(place, samples, ("seed",))


def _check_plain(place: str, function: object, way_out: str) -> None:
    if not callable(function):
        raise BadApplication(place, f"{shown(function)} is not a function", way_out)
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        problem = "it is async, which is not supported"
        raise BadApplication(place, problem, "write def instead of async def")


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

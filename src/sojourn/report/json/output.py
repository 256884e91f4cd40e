"""JSON on standard output: a document, or a line for each event."""

import json
from collections.abc import Mapping
from math import isfinite
from typing import Any

import typer

__all__ = ["nulled", "print_event", "print_json"]


def print_json(report: Mapping[str, Any]) -> None:
    """Print *report*; null is unknown or infinite."""
    typer.echo(json.dumps(nulled(report), indent=2, allow_nan=False, ensure_ascii=False))


def print_event(event: str, values: Mapping[str, object]) -> None:
    """Print an event and its values on one line."""
    typer.echo(json.dumps({"event": event, **nulled(values)}, ensure_ascii=False))


def nulled(value: object) -> Any:  # noqa: ANN401 - whatever JSON takes
    """Return *value* with None for NaN and infinity.

    >>> nulled({"mean_s": float("nan"), "turns": (1, 2)})
    {'mean_s': None, 'turns': [1, 2]}
    """
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, str):  # surrogates, for example from file names
        return value.encode(errors="backslashreplace").decode()
    if isinstance(value, Mapping):
        return {name: nulled(inside) for name, inside in value.items()}
    if isinstance(value, tuple | list):
        return [nulled(inside) for inside in value]
    return value

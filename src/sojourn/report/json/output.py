"""JSON on standard output: one document, or one line per event."""

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from math import isfinite
from typing import Any

import typer

from sojourn.text import escaped_json


def picked(record: object, *names: str) -> dict[str, Any]:
    return {name: getattr(record, name) for name in names}


def print_json(report: Mapping[str, Any]) -> None:
    """Print *report*; null is unknown or infinite."""
    text = json.dumps(nulled(report), indent=2, allow_nan=False, ensure_ascii=False)
    typer.echo(escaped_json(text))


def print_event(event: str, values: Mapping[str, object]) -> None:
    typer.echo(escaped_json(json.dumps({"event": event, **nulled(values)}, ensure_ascii=False)))


def nulled(value: object) -> Any:  # noqa: ANN401 - whatever JSON takes
    """Return *value* with None for NaN and infinity; records are mappings of their fields.

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
    if is_dataclass(value):
        return {field.name: nulled(getattr(value, field.name)) for field in fields(value)}
    return value

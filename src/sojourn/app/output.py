"""Checks of the records that a function yields."""

from collections.abc import Callable
from typing import Any, TypeAlias

from sojourn.app.fit import check_record
from sojourn.app.operator import PythonOperator
from sojourn.errors import BadRecord
from sojourn.topology.check import shown

__all__ = ["Checked", "Emitted", "output_of"]

Emitted: TypeAlias = tuple[str, tuple[Any, ...]]
"""The name of a stream, and a record for it."""

Checked: TypeAlias = Callable[[object], Emitted]


def output_of(operator: PythonOperator) -> Checked:
    """Return `checked(output)`, which returns stream and record of what *operator* yielded.

    It raises a `BadRecord` that names operator, stream and value if they do not fit.
    """
    streams = {
        stream.name: check_record(stream.schema)
        for stream in operator.emits
        if stream.schema is not None
    }
    place = f"operators.{operator.name}.emits"
    if operator.names_output:
        return _several(place, streams)
    return _one(place, *streams.items()) if streams else _none(place)


def _none(place: str) -> Checked:
    def checked(output: object) -> Emitted:
        raise BadRecord(place, f"{shown(output)} was emitted, but emits= is not given; add it")

    return checked


def _one(place: str, stream: tuple[str, Callable[[Any], None]]) -> Checked:
    name, check = stream

    def checked(output: Any) -> Emitted:  # noqa: ANN401 - that is what is checked
        try:
            check(output)
        except BadRecord as error:
            raise BadRecord(f"{place}.{name}{error.place}", error.problem) from error.__cause__
        return name, output

    return checked


def _several(place: str, streams: dict[str, Callable[[Any], None]]) -> Checked:
    names = ", ".join(streams)

    def checked(output: Any) -> Emitted:  # noqa: ANN401
        try:
            name, record = output
            check = streams[name]
        except (KeyError, TypeError, ValueError) as error:
            problem = f"{shown(output)} does not name its stream"
            way_out = f"yield (stream, record), where the stream is one of {names}"
            raise BadRecord(place, f"{problem}; {way_out}") from error
        try:
            check(record)
        except BadRecord as error:
            raise BadRecord(f"{place}.{name}{error.place}", error.problem) from error.__cause__
        return name, record

    return checked

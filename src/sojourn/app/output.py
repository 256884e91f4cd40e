"""Checks of the records that a function yields."""

from collections.abc import Callable
from typing import Any, TypeAlias

from sojourn.app.operator import PythonOperator
from sojourn.app.type_check import check_record, within
from sojourn.errors import BadRecord
from sojourn.text import shown

Emitted: TypeAlias = tuple[str, tuple[Any, ...]]
"""The name of a stream, and a record for it."""


def output_of(operator: PythonOperator) -> Callable[[object], Emitted]:
    """Return the check for the outputs of *operator*, which returns their stream and record.

    It raises a `BadRecord` with operator, stream and value if the value does not fit.
    """
    streams = {
        stream.name: check_record(stream.schema)
        for stream in operator.emits
        if stream.schema is not None
    }
    place, names = f"operators.{operator.name}.emits", ", ".join(streams)

    def several(output: Any) -> Emitted:  # noqa: ANN401 - its type is checked here
        try:
            name, record = output
            check = streams[name]
        except (KeyError, TypeError, ValueError) as error:
            problem = f"{shown(output)} does not name its stream"
            way_out = f"yield (stream, record), where the stream is one of {names}"
            raise BadRecord(place, f"{problem}; {way_out}") from error
        within(f"{place}.{name}", check, record)
        return name, record

    def none(output: object) -> Emitted:
        raise BadRecord(place, f"{shown(output)} was emitted, but emits= is not given; add it")

    if operator.names_output or not streams:
        return several if operator.names_output else none
    ((only, check_only),) = streams.items()
    only_place = f"{place}.{only}"

    def one(output: Any) -> Emitted:  # noqa: ANN401
        within(only_place, check_only, output)
        return only, output

    return one

"""Parts of an application: operators that pass records to each other without Kafka."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sojourn.app.graph import readers
from sojourn.app.operator import AppOperator, NativeOperator, PythonOperator

if TYPE_CHECKING:
    from sojourn.app.application import App

__all__ = ["Part", "parts_of", "streams_in_kafka"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Functions that are connected by streams which are not in Kafka.

    A part is named after its first operator. It *reads* streams from Kafka and *writes* others
    there; its *inner* streams pass from operator to operator, and some of those are written to
    Kafka as well, because they are sinks.
    """

    name: str
    operators: tuple[str, ...]
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    inner: tuple[str, ...]


def streams_in_kafka(app: "App") -> frozenset[str]:
    """Return the streams that operators read from Kafka.

    Those are sources, streams that are declared durable, and what Spark's own operators read
    and write. Others go from operator to operator; if they are sinks, to Kafka as well.
    """
    if app.durable_streams:
        return frozenset(app.streams)
    native = [o for o in app.operators.values() if isinstance(o, NativeOperator)]
    return frozenset(
        {
            *app.sources,
            *(name for name, stream in app.streams.items() if stream.durable),
            *(stream.name for o in native for stream in (*o.reads, *o.emits)),
        }
    )


def parts_of(app: "App") -> tuple[Part, ...]:
    """Return the parts of an application, in the order of their first operators.

    >>> from sojourn.app.application import App
    >>> app = App("shop")
    >>> orders = app.source("orders", schema="id long")
    >>> @app.operator(reads=orders, emits="id long")
    ... def check(id: int):
    ...     yield (id,)
    >>> @app.operator(reads=check)
    ... def store(id: int):
    ...     print(id)
    >>> [(part.name, part.operators, part.inner) for part in parts_of(app)]
    [('check', ('check', 'store'), ('check',))]
    """
    kafka = streams_in_kafka(app)
    functions = {
        name: operator
        for name, operator in app.operators.items()
        if isinstance(operator, PythonOperator)
    }
    sinks = {sink.stream.name for sink in app.sinks.values()}
    return tuple(_part(app, group, kafka, sinks) for group in _connected(functions, app, kafka))


def _connected(
    functions: Mapping[str, AppOperator], app: "App", kafka: frozenset[str]
) -> list[list[str]]:
    """Return the functions that streams outside of Kafka connect, in groups."""
    groups = {name: {name} for name in functions}
    for name, operator in functions.items():
        for stream in operator.emits:
            if stream.name in kafka:
                continue
            for reader in readers(stream.name, app.operators):
                if groups[reader] is not groups[name]:
                    groups[name] |= groups[reader]
                    for other in groups[reader]:
                        groups[other] = groups[name]
    found: list[list[str]] = []
    for name in functions:
        if not any(name in group for group in found):
            found.append([other for other in functions if other in groups[name]])
    return found


def _part(app: "App", group: list[str], kafka: frozenset[str], sinks: set[str]) -> Part:
    operators = [app.operators[name] for name in group]
    read = _once(s.name for o in operators for s in o.reads)
    written = _once(s.name for o in operators for s in o.emits)
    return Part(
        name=group[0],
        operators=tuple(group),
        reads=tuple(name for name in read if name in kafka),
        writes=tuple(name for name in written if name in kafka or name in sinks),
        inner=tuple(name for name in read if name not in kafka),
    )


def _once(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))

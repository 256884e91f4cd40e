"""Parts of an application: operators that pass records to each other without Kafka."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sojourn.app.division import Division, Group, divided

if TYPE_CHECKING:
    from sojourn.app.application import App

__all__ = ["Part", "parts_of", "streams_in_kafka"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Functions that are connected by streams outside of Kafka, and run in one query."""

    name: str
    """The name of its first operator."""
    operators: tuple[str, ...]
    reads: tuple[str, ...]
    """The streams it reads from Kafka."""
    writes: tuple[str, ...]
    """The streams it writes to Kafka, including inner streams that are sinks."""
    inner: tuple[str, ...]
    """The streams that pass between its operators outside of Kafka."""
    before: tuple[str, ...] = ()
    """Projections of its input, in its query."""
    behind: tuple[str, ...] = ()
    """Projections of its output into sinks, in its query."""

    @property
    def projections(self) -> tuple[str, ...]:
        """The projections that run in its query."""
        return (*self.before, *self.behind)


def streams_in_kafka(app: "App") -> frozenset[str]:
    """Return the streams that operators read from Kafka.

    These are sources, durable streams, and inputs and outputs of native operators, except for
    projections that belong to a part. Other streams pass from operator to operator; if they are
    sinks, they are written to Kafka as well.
    """
    return divided(app).kafka


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
    division = divided(app)
    return tuple(_part(app, group, division) for group in division.groups)


def _part(app: "App", group: Group, division: Division) -> Part:
    operators = [app.operators[name] for name in group]
    before = tuple(name for name, of in division.before.items() if of == group)
    behind = tuple(name for name, of in division.behind.items() if of == group)
    first, last = ([app.operators[name] for name in names] for names in (before, behind))
    read = _once(s.name for o in (*operators, *first) for s in o.reads)
    passed = _once(s.name for o in (*operators, *last) for s in o.reads)
    written = _once(s.name for o in (*operators, *last) for s in o.emits)
    leaves = division.kafka | {sink.stream.name for sink in app.sinks.values()}
    return Part(
        name=group[0],
        operators=group,
        reads=tuple(name for name in read if name in division.kafka),
        writes=tuple(name for name in written if name in leaves),
        inner=tuple(name for name in passed if name not in division.kafka),
        before=before,
        behind=behind,
    )


def _once(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))

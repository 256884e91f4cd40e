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
    """Functions that are connected by streams which are not in Kafka.

    A part is named after its first operator. It *reads* streams from Kafka and *writes* others
    there; its *inner* streams pass from operator to operator, and some of those are written to
    Kafka as well, because they are sinks. The projections *before* its functions change what
    it reads, those *behind* them make sinks of what it writes: both in its query.
    """

    name: str
    operators: tuple[str, ...]
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    inner: tuple[str, ...]
    before: tuple[str, ...] = ()
    behind: tuple[str, ...] = ()

    @property
    def projections(self) -> tuple[str, ...]:
        """The projections that run in its query."""
        return (*self.before, *self.behind)


def streams_in_kafka(app: "App") -> frozenset[str]:
    """Return the streams that operators read from Kafka.

    Those are sources, streams that are declared durable, and what Spark's own operators read
    and write, but for projections that belong to a part. Others go from operator to operator;
    if they are sinks, to Kafka as well.
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

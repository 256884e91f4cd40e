"""Parts of an application: operators that pass records to each other without Kafka.

Functions that are connected by streams outside of Kafka form a part. A projection next to a
part runs in its query if that needs no further stream in Kafka: before the part, if the part
alone reads its result; behind it, if it makes a sink of a stream that the part writes.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sojourn.app.application import App
from sojourn.app.operator import NativeOperator, PythonOperator
from sojourn.app.streams import readers, writers

_Group = tuple[str, ...]
"""The functions of a part, by name."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Division:
    """The division of an application into groups of functions."""

    kafka: frozenset[str]
    """The streams that operators read from Kafka."""
    groups: Sequence[_Group]
    before: Mapping[str, _Group] = field(default_factory=dict)
    """Projections that run in the query of the group that reads them, with that group."""
    behind: Mapping[str, _Group] = field(default_factory=dict)
    """Projections that run in the query of the group that they read, with that group."""


def streams_in_kafka(app: App) -> frozenset[str]:
    """Return the streams that operators read from Kafka.

    These are sources, durable streams, and inputs and outputs of native operators, except for
    projections that belong to a part. Other streams pass from operator to operator; if they are
    sinks, they are written to Kafka as well.
    """
    return _divided(app).kafka


def parts_of(app: App) -> tuple[Part, ...]:
    """Return the parts of an application, in the order of their first operators.

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
    division = _divided(app)
    return tuple(_part(app, group, division) for group in division.groups)


def _part(app: App, group: _Group, division: _Division) -> Part:
    operators = [app.operators[name] for name in group]
    before = tuple(name for name, of in division.before.items() if of == group)
    behind = tuple(name for name, of in division.behind.items() if of == group)
    first, last = ([app.operators[name] for name in names] for names in (before, behind))
    read = _once(s.name for o in (*operators, *first) for s in o.reads)
    passed = _once(s.name for o in (*operators, *last) for s in o.reads)
    written = _once(s.name for o in (*operators, *last) for s in o.emits)
    leaves = division.kafka | _sinks(app)
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


def _divided(app: App) -> _Division:
    """Return the division of *app* with the fewest streams in Kafka."""
    if app.durable_streams:
        kafka = frozenset(app.streams)
        return _Division(kafka=kafka, groups=_connected(app, kafka))
    projections = {
        name: operator
        for name, operator in app.operators.items()
        if isinstance(operator, NativeOperator) and operator.kind == "project"
    }
    behind = [name for name in projections if _may_be_behind(app, projections[name])]
    # Candidates are dropped until each of the rest has a group.
    while True:
        kafka = _in_kafka(app, behind)
        groups = _connected(app, kafka)
        found = {name: _group_before(app, groups, projections[name], kafka) for name in behind}
        if all(found.values()):
            break
        # the streams that the others read move to Kafka, which may split a group
        behind = [name for name in behind if found[name]]
    before = _before(app, groups, [o for name, o in projections.items() if name not in found])
    return _Division(kafka=kafka - before.keys(), groups=groups, before=before, behind=found)


def _in_kafka(app: App, behind: Sequence[str]) -> frozenset[str]:
    """Return the streams in Kafka if the projections *behind* groups run in their queries."""
    native = [
        operator
        for name, operator in app.operators.items()
        if isinstance(operator, NativeOperator) and name not in behind
    ]
    return frozenset(
        {
            *app.sources,
            *(name for name, stream in app.streams.items() if stream.durable),
            *(stream.name for o in native for stream in (*o.reads, *o.emits)),
        }
    )


def _functions(app: App) -> list[str]:
    return [name for name, o in app.operators.items() if isinstance(o, PythonOperator)]


def _connected(app: App, kafka: frozenset[str]) -> list[_Group]:
    """Return the groups of functions that streams outside of Kafka connect."""
    functions = _functions(app)
    groups: list[set[str]] = []
    for name in functions:
        streams = [s.name for s in app.operators[name].emits if s.name not in kafka]
        near = {name, *(each for s in streams for each in readers(s, app.operators))}
        near.intersection_update(functions)
        joined = near.union(*(group for group in groups if group & near))
        groups = [*(group for group in groups if not group & near), joined]
    found = [tuple(name for name in functions if name in group) for group in groups]
    return sorted(found, key=lambda group: functions.index(group[0]))


def _may_be_behind(app: App, projection: NativeOperator) -> bool:
    """Return whether a projection only makes a sink of a stream that functions write."""
    (read,), made, functions = projection.reads, projection.stream, _functions(app)
    return (
        made.name in _sinks(app)
        and not made.durable
        and not readers(made.name, app.operators)
        and writers(made.name, app.operators) == [projection.name]
        and not app.streams[read.name].durable
        and all(name in functions for name in writers(read.name, app.operators))
    )


def _group_before(
    app: App, groups: Sequence[_Group], projection: NativeOperator, kafka: frozenset[str]
) -> _Group:
    """Return the only group that writes the input of a projection; empty if there is none."""
    read = projection.reads[0].name
    if read in kafka:  # other operators read or write it there
        return ()
    return _around(groups, writers(read, app.operators))


def _before(
    app: App, groups: Sequence[_Group], projections: Sequence[NativeOperator]
) -> dict[str, _Group]:
    """Return the projections whose stream is read by one group only, with that group.

    A record that enters a part is one record there, so the group must not read the input of the
    projection a second time: neither in a function nor through another projection.
    """
    found: dict[str, _Group] = {}
    for projection in projections:
        (read,), made = projection.reads, projection.stream
        if made.durable or made.name in _sinks(app):
            continue
        if writers(made.name, app.operators) != [projection.name]:
            continue
        group = _around(groups, readers(made.name, app.operators))
        others = readers(read.name, app.operators)
        if group and not any(o in group or found.get(o) == group for o in others):
            found[projection.name] = group
    return found


def _around(groups: Sequence[_Group], names: Sequence[str]) -> _Group:
    """Return the group that contains all *names*; empty if none does, or *names* is empty."""
    return next((group for group in groups if names and set(names) <= set(group)), ())


def _sinks(app: App) -> set[str]:
    return {sink.stream.name for sink in app.sinks.values()}

"""How an application is divided: which streams are in Kafka, and which operators run together.

Functions that streams outside of Kafka connect are a group. A projection next to a group runs
in its query, if no stream has to be in Kafka for it: one that changes what the group alone
reads, or one that makes a sink of what the group writes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sojourn.app.graph import readers, writers
from sojourn.app.operator import NativeOperator, PythonOperator

if TYPE_CHECKING:
    from sojourn.app.application import App

__all__ = ["Division", "Group", "divided"]

Group = tuple[str, ...]
"""The functions of a part, by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Division:
    """The *groups* of functions, and the streams that operators read from *kafka*.

    Projections *before* and *behind* a group run in its query: the group, by their names.
    """

    kafka: frozenset[str]
    groups: Sequence[Group]
    before: Mapping[str, Group] = field(default_factory=dict)
    behind: Mapping[str, Group] = field(default_factory=dict)


def divided(app: "App") -> Division:
    """Return how *app* is divided: with as few streams in Kafka as can be."""
    if app.durable_streams:
        kafka = frozenset(app.streams)
        return Division(kafka=kafka, groups=_connected(app, kafka))
    projections = {
        name: operator
        for name, operator in app.operators.items()
        if isinstance(operator, NativeOperator) and operator.kind == "project"
    }
    behind = [name for name in projections if _may_be_behind(app, projections[name])]
    while True:
        kafka = _in_kafka(app, behind)
        groups = _connected(app, kafka)
        found = {name: _group_before(app, groups, projections[name], kafka) for name in behind}
        if all(found.values()):
            break
        # what those read is in Kafka then, and that may divide a group
        behind = [name for name in behind if found[name]]
    before = _before(app, groups, [o for name, o in projections.items() if name not in found])
    return Division(kafka=kafka - before.keys(), groups=groups, before=before, behind=found)


def _in_kafka(app: "App", behind: Sequence[str]) -> frozenset[str]:
    """Return the streams in Kafka where the projections *behind* groups run with them."""
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


def _functions(app: "App") -> list[str]:
    return [name for name, o in app.operators.items() if isinstance(o, PythonOperator)]


def _connected(app: "App", kafka: frozenset[str]) -> list[Group]:
    """Return the functions that streams outside of Kafka connect, in groups."""
    functions = _functions(app)
    groups = {name: {name} for name in functions}
    for name in functions:
        for stream in app.operators[name].emits:
            if stream.name in kafka:
                continue
            for reader in readers(stream.name, app.operators):
                if reader in groups and groups[reader] is not groups[name]:
                    groups[name] |= groups[reader]
                    for other in groups[reader]:
                        groups[other] = groups[name]
    found: list[Group] = []
    for name in functions:
        if not any(name in group for group in found):
            found.append(tuple(other for other in functions if other in groups[name]))
    return found


def _may_be_behind(app: "App", projection: NativeOperator) -> bool:
    """Tell whether a projection makes a sink, and nothing else, of what functions write."""
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
    app: "App", groups: Sequence[Group], projection: NativeOperator, kafka: frozenset[str]
) -> Group:
    """Return the group that alone writes what a projection reads; empty if there is none."""
    read = projection.reads[0].name
    if read in kafka:  # others read it there, or write it
        return ()
    return _around(groups, writers(read, app.operators))


def _before(
    app: "App", groups: Sequence[Group], projections: Sequence[NativeOperator]
) -> dict[str, Group]:
    """Return the projections whose stream one group alone reads, with that group.

    A record that enters a part is one record there, so nobody else of the group may read what
    the projection reads.
    """
    found: dict[str, Group] = {}
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


def _around(groups: Sequence[Group], names: Sequence[str]) -> Group:
    """Return the group that has all of *names*; empty if none has, or there are no names."""
    return next((group for group in groups if names and set(names) <= set(group)), ())


def _sinks(app: "App") -> set[str]:
    return {sink.stream.name for sink in app.sinks.values()}

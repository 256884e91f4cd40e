"""Divides an application: which streams go through Kafka, and which operators run together.

Functions that are connected by streams outside of Kafka form a group. A projection next to a
group runs in its query if that needs no further stream in Kafka: before the group, if the group
alone reads its result; behind it, if it makes a sink of a stream that the group writes.
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
    """The division of an application into groups of functions."""

    kafka: frozenset[str]
    """The streams that operators read from Kafka."""
    groups: Sequence[Group]
    before: Mapping[str, Group] = field(default_factory=dict)
    """Projections that run in the query of the group that reads them, with that group."""
    behind: Mapping[str, Group] = field(default_factory=dict)
    """Projections that run in the query of the group that they read, with that group."""


def divided(app: "App") -> Division:
    """Return the division of *app* with the fewest streams in Kafka."""
    if app.durable_streams:
        kafka = frozenset(app.streams)
        return Division(kafka=kafka, groups=_connected(app, kafka))
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
    return Division(kafka=kafka - before.keys(), groups=groups, before=before, behind=found)


def _in_kafka(app: "App", behind: Sequence[str]) -> frozenset[str]:
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


def _functions(app: "App") -> list[str]:
    return [name for name, o in app.operators.items() if isinstance(o, PythonOperator)]


def _connected(app: "App", kafka: frozenset[str]) -> list[Group]:
    """Return the groups of functions that streams outside of Kafka connect."""
    functions = _functions(app)
    # Functions of a group share one set, so merging two sets relabels all their functions.
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
    app: "App", groups: Sequence[Group], projection: NativeOperator, kafka: frozenset[str]
) -> Group:
    """Return the only group that writes the input of a projection; empty if there is none."""
    read = projection.reads[0].name
    if read in kafka:  # other operators read or write it there
        return ()
    return _around(groups, writers(read, app.operators))


def _before(
    app: "App", groups: Sequence[Group], projections: Sequence[NativeOperator]
) -> dict[str, Group]:
    """Return the projections whose stream is read by one group only, with that group.

    A record that enters a part is one record there, so the group must not read the input of the
    projection a second time: neither in a function nor through another projection.
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
    """Return the group that contains all *names*; empty if none does, or *names* is empty."""
    return next((group for group in groups if names and set(names) <= set(group)), ())


def _sinks(app: "App") -> set[str]:
    return {sink.stream.name for sink in app.sinks.values()}

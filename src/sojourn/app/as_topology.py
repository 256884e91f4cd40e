"""Derives the topology of an application, for planner and simulator."""

from collections.abc import Mapping

from sojourn.app.application import App
from sojourn.app.operator import AppOperator, Hints
from sojourn.app.settings import check_hints
from sojourn.app.streams import readers
from sojourn.errors import BadApplication
from sojourn.text import shown
from sojourn.topology import Arrival, Operator, Topology


def as_topology(
    app: App, rates: Mapping[str, float], measured: Mapping[str, Hints]
) -> Topology:
    """Return the topology of *app* with *rates* by source.

    Without a hint an operator sends one record to each stream per record it reads. A stream
    counts once for each operator that reads it, even by broadcast.
    """
    _check_names("rates", rates, app.sources, "source")
    _check_names("measured", measured, app.operators, "operator")
    for source in app.sources:
        if source not in rates:
            way_out = f'give its records per second: {{"{source}": 100}}'
            raise BadApplication(f"rates.{source}", "the rate is missing", way_out)
    return Topology(
        name=app.name,
        arrivals=tuple(
            arrival for name in app.sources for arrival in _arrivals(app, name, rates[name])
        ),
        operators=tuple(
            _operator(app, operator, measured.get(name, operator.hints))
            for name, operator in app.operators.items()
        ),
    )


def _arrivals(app: App, source: str, per_s: float) -> list[Arrival]:
    """Return an arrival for each operator that reads *source*: each reads all records."""
    into = readers(source, app.operators)
    names = [source] if len(into) == 1 else [f"{source} to {reader}" for reader in into]
    return [
        Arrival(name=name, per_s=per_s, into=reader)
        for name, reader in zip(names, into, strict=True)
    ]


def _operator(app: App, operator: AppOperator, hints: Hints) -> Operator:
    check_hints(f"operators.{operator.name}", hints, operator.emits)
    if hints.service_s is None:
        raise BadApplication(
            f"operators.{operator.name}.service_s",
            "the service time is not known",
            "set service_s= in seconds, or run the application to measure it",
        )
    emits: dict[str, float] = {}
    for stream in operator.emits:
        for reader in readers(stream.name, app.operators):
            emits[reader] = emits.get(reader, 0.0) + hints.sends.get(stream.name, 1.0)
    return Operator(
        name=operator.name,
        service_s=hints.service_s,
        service_scv=hints.service_scv,
        emits=emits,
        min_processors=operator.min_processors,
        max_processors=operator.max_processors,
    )


def _check_names(
    place: str, given: Mapping[str, object], known: Mapping[str, object], what: str
) -> None:
    for name in given:
        if name not in known:
            problem = f"there is no {what} {shown(name)}"
            raise BadApplication(f"{place}.{name}", problem, f"write {' or '.join(known)}")

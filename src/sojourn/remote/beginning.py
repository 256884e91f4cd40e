"""An application before anything is measured: what is assumed, and what it starts with."""

from collections.abc import Mapping
from dataclasses import replace

from sojourn.app.application import App
from sojourn.remote.orders import checked_allocation
from sojourn.topology import Topology

__all__ = ["first_allocation", "first_topology"]

# Guesses, which the first look of the loop replaces by what it sees.
_PER_S, _SERVICE_S = 1.0, 0.01


def first_topology(app: App, rates: Mapping[str, float]) -> Topology:
    """Return the topology of *app*, with guesses where neither hints nor *rates* tell.

    What Spark runs itself keeps the processors it has: they cannot be changed while it runs.

    >>> app = App("echo")
    >>> @app.operator(reads=app.source("lines", schema="line string"), emits="line string")
    ... def same(line):
    ...     yield (line,)
    >>> first_topology(app, {}).loads["same"]
    StationLoad(arrivals_per_s=1.0, service_s=0.01...)
    """
    guessed = {
        name: replace(operator.hints, service_s=_SERVICE_S)
        for name, operator in app.operators.items()
        if operator.hints.service_s is None
    }
    known = {source: rates.get(source, _PER_S) for source in app.sources}
    topology = app.topology(known, measured=guessed)
    fixed = {name for name, operator in app.operators.items() if operator.native}
    operators = tuple(
        replace(operator, max_processors=operator.min_processors)
        if operator.name in fixed
        else operator
        for operator in topology.operators
    )
    return replace(topology, operators=operators)


def first_allocation(
    topology: Topology, asked: Mapping[str, int], most: int | None
) -> dict[str, int]:
    """Return the processors *asked* for, and of other operators the fewest they may have."""
    least = {operator.name: operator.min_processors for operator in topology.operators}
    return checked_allocation(topology, least, asked, most) if asked else least

"""An application before anything is measured: what is assumed, and what it starts with."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace

from sojourn.app.application import App
from sojourn.plan import Plan
from sojourn.service.orders import checked_allocation
from sojourn.topology import Topology

__all__ = ["FirstAllocation", "bounded", "first_allocation", "first_topology", "guesses"]

# Where nobody says how many processors there may be.
_PER_CORE, _LEAST_MOST = 16, 32
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


def guesses(app: App, rates: Mapping[str, float]) -> list[str]:
    """Return what `first_topology` assumes that nobody said, and where to say it."""
    unknown = [name for name, o in app.operators.items() if o.hints.service_s is None]
    unrated = [name for name in app.sources if name not in rates]
    return [
        *(
            f"nobody said how long {name} takes for a record, so {1000 * _SERVICE_S:g} ms are "
            "assumed; give service_s= to its @app.operator"
            for name in unknown
        ),
        *(
            f"nobody said how many records {name} sends, so {_PER_S:g} per second is assumed; "
            f"write --rate {name}=40"
            for name in unrated
        ),
    ]


def bounded(
    topology: Topology, asked: Mapping[str, int], most: int | None
) -> tuple[int, list[str]]:
    """Return how many processors there may be at most, and what is to be said of that.

    Where nobody says it, the cores do: operators that wait, for a database or another service,
    use many processors to a core, and those that compute none beyond the cores. No bound at
    all lets a target that cannot be met fill the memory of the machine.
    """
    if most is not None:
        return most, []
    cores = len(os.sched_getaffinity(0))
    begins = sum(asked.get(o.name, o.min_processors) for o in topology.operators)
    most = max(_LEAST_MOST, _PER_CORE * cores, begins)
    each = (
        f"{_PER_CORE} per core"
        if most == _PER_CORE * cores
        else f"for {cores} core{'s' * (cores > 1)}"
    )
    return most, [f"at most {most} processors ({each}; --max-processors changes it)"]


@dataclass(frozen=True, slots=True)
class FirstAllocation:
    """The *processors* that an application begins with, and where the numbers come from."""

    processors: dict[str, int]
    said: str

    @property
    def plan(self) -> Plan:
        """What the engine is started with."""
        return Plan.here(self.processors, reason=self.said)


def first_allocation(
    topology: Topology,
    asked: Mapping[str, int],
    most: int | None,
    last: Mapping[str, int] | None = None,
) -> FirstAllocation:
    """Return the processors *asked* for; else what operators had *last*, else the fewest.

    What they had last is kept within the bounds of now. Raise `BadAllocation` where those
    that are asked for are not.
    """
    fewest = {operator.name: operator.min_processors for operator in topology.operators}
    least = checked_allocation(topology, fewest, asked, most) if asked else fewest
    before = {name: n for name, n in (last or {}).items() if name in least.keys() - asked}
    bounded = {name: _bounded(topology, name, n) for name, n in before.items()}
    processors = _fitted(least, least | bounded, most)
    kept = {name for name, n in before.items() if processors[name] == n}
    groups = {
        "--start": [name for name in least if name in asked],
        "as in the run before": [name for name in least if name in kept],
        "as in the run before, within the bounds of now": [
            name for name in least if name in before.keys() - kept
        ],
        "min_processors": [name for name in least if name not in {*asked, *before}],
    }
    said = [
        f"{', '.join(f'{name}={processors[name]}' for name in names)} ({why})"
        for why, names in groups.items()
        if names
    ]
    return FirstAllocation(processors, "; ".join(said))


def _bounded(topology: Topology, name: str, processors: int) -> int:
    operator = topology.operator[name]
    most = operator.max_processors
    return max(operator.min_processors, processors if most is None else min(processors, most))


def _fitted(
    least: Mapping[str, int], wanted: Mapping[str, int], most: int | None
) -> dict[str, int]:
    """Return what is *wanted*; where that is too much, the same share of all beyond *least*.

    >>> _fitted({"split": 1, "count": 1}, {"split": 9, "count": 5}, 8)
    {'split': 5, 'count': 3}
    """
    beyond = {name: wanted[name] - least[name] for name in least}
    room = sum(beyond.values()) if most is None else max(0, most - sum(least.values()))
    if sum(beyond.values()) <= room:
        return dict(wanted)
    share = room / sum(beyond.values())
    return {name: least[name] + int(share * beyond[name]) for name in least}

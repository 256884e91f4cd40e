"""The topology and the plan that an application starts with, before any measurement."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from sojourn.app.address import is_application, load_here, with_rates
from sojourn.app.application import App
from sojourn.app.waiting_app import entrances
from sojourn.decide.objective import Objective, few_roots
from sojourn.decide.plan import Plan
from sojourn.errors import BadInput
from sojourn.service.orders import checked_allocation
from sojourn.service.warnings import floor_warning
from sojourn.topology import Topology
from sojourn.topology.file import read_topology

# The default of --max-processors: processors per core, and a lower bound.
_PER_CORE, _LEAST_MOST = 16, 32
# Assumed until the first turn of the loop has measured them.
_PER_S, _SERVICE_S = 1.0, 0.01


def first_topology(app: App, rates: Mapping[str, float]) -> Topology:
    """Return the topology of *app*, with guesses for missing hints and *rates*.

    Native operators have a fixed number of processors, which cannot change while they run.

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
    fixed = [topology.operator[name] for name, o in app.operators.items() if o.native]
    return topology.with_operators(
        *(replace(operator, max_processors=operator.min_processors) for operator in fixed)
    )


def guesses(app: App, rates: Mapping[str, float]) -> list[str]:
    """Return a note for each guess of `first_topology`."""
    unknown = [name for name, o in app.operators.items() if o.hints.service_s is None]
    unrated = [name for name in app.sources if name not in rates]
    return [
        *(
            f"the service time of {name} is unknown: {1000 * _SERVICE_S:g} ms is assumed; "
            "give service_s= to its @app.operator"
            for name in unknown
        ),
        *(
            f"the rate of {name} is unknown: {_PER_S:g} record per second is assumed; "
            f"write --rate {name}=40"
            for name in unrated
        ),
    ]


def bounded(
    topology: Topology, asked: Mapping[str, int], most: int | None, cores: float | None = None
) -> tuple[int, list[str]]:
    """Return the maximum number of processors, and a note if it is the default.

    The default is proportional to *cores*, by default those of this machine. Operators that
    wait for a database or another service use many processors per core; operators that compute
    gain nothing beyond the cores. Without a bound, a target that cannot be met would exhaust
    the memory.
    """
    if most is not None:
        return most, []
    cores = cores or len(os.sched_getaffinity(0))
    begins = sum(asked.get(o.name, o.min_processors) for o in topology.operators)
    most = max(_LEAST_MOST, int(_PER_CORE * cores), begins)
    each = (
        f"{_PER_CORE} per core"
        if most == int(_PER_CORE * cores)
        else f"for {cores:g} core{'s' * (cores > 1)}"
    )
    return most, [f"at most {most} processors ({each}; --max-processors changes it)"]


def first_plan(
    topology: Topology,
    asked: Mapping[str, int],
    most: int | None,
    last: Mapping[str, int] | None = None,
) -> Plan:
    """Return the first plan: processors as *asked*, else as in the *last* run, else the fewest.

    The processors of the last run are limited to the current bounds. Raise `BadAllocation` if
    the processors asked for are outside the bounds.
    """
    fewest = {operator.name: operator.min_processors for operator in topology.operators}
    least = checked_allocation(topology, fewest, asked, most) if asked else fewest
    before = {name: n for name, n in (last or {}).items() if name in least.keys() - asked}
    bounded = {
        name: max(operator.min_processors, min(n, operator.max_processors or n))
        for name, n in before.items()
        for operator in (topology.operator[name],)
    }
    processors = _fitted(least, least | bounded, most)
    kept = {name for name, n in before.items() if processors[name] == n}
    groups = {
        "--start": [name for name in least if name in asked],
        "as in the last run": [name for name in least if name in kept],
        "as in the last run, within the current bounds": [
            name for name in least if name in before.keys() - kept
        ],
        "min_processors": [name for name in least if name not in {*asked, *before}],
    }
    said = [
        f"{', '.join(f'{name}={processors[name]}' for name in names)} ({why})"
        for why, names in groups.items()
        if names
    ]
    return Plan.here(processors, reason="; ".join(said))


def _fitted(
    least: Mapping[str, int], wanted: Mapping[str, int], most: int | None
) -> dict[str, int]:
    """Return *wanted*; if it exceeds *most*, the excess over *least* is cut proportionally.

    >>> _fitted({"split": 1, "count": 1}, {"split": 9, "count": 5}, 8)
    {'split': 5, 'count': 3}
    """
    beyond = {name: wanted[name] - least[name] for name in least}
    room = sum(beyond.values()) if most is None else max(0, most - sum(least.values()))
    if sum(beyond.values()) <= room:
        return dict(wanted)
    share = room / sum(beyond.values())
    return {name: least[name] + int(share * beyond[name]) for name in least}


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumptions:
    """An application, and the topology assumed for it before measurements."""

    app: App
    topology: Topology
    known: frozenset[str]
    """Operators with a given service time."""
    rated: bool = True
    """Whether the rate of each source is given."""
    guesses: tuple[str, ...] = ()
    """Notes on the values that were guessed."""

    @classmethod
    def at(cls, address: str, rates: Mapping[str, float], *, simulated: bool) -> "Assumptions":
        """Return the assumptions on the application at *address*: a module or a topology file.

        A topology file is *simulated*, or runs as an application whose operators only wait.
        """
        in_module = is_application(address)
        if simulated and not in_module:
            topology = with_rates(read_topology(Path(address)), rates)
            known = frozenset(topology.operator)
            return cls(app=App(topology.name), topology=topology, known=known)
        app = load_here(address)
        if not in_module:
            rates = {each.name: each.per_s for each in entrances(read_topology(Path(address)))}
        elif unknown := rates.keys() - app.sources.keys():
            raise BadInput(
                f"--rate {min(unknown)}: there is no such source; "
                f"there are {', '.join(app.sources)}"
            )
        given = (name for name, o in app.operators.items() if o.hints.service_s is not None)
        return cls(
            app=app,
            topology=first_topology(app, rates),
            known=frozenset(given),
            rated=rates.keys() >= app.sources.keys(),
            # on Spark guesses are soon measured; the simulator uses them throughout
            guesses=tuple(guesses(app, rates)) if simulated else (),
        )

    def notes(self, objective: Objective) -> tuple[str, ...]:
        """Return a note for each guess, and on what no allocation can change.

        That is a target below the latency without waiting, and slices with too few roots.
        """
        certain = self.rated and self.known >= self.topology.operator.keys()
        warnings = (
            floor_warning(self.topology, objective.target, self.known),
            few_roots(objective, self.topology) if certain else "",
        )
        return (*self.guesses, *filter(None, warnings))

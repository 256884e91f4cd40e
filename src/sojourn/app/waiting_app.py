"""A stand-in for an application that exists only as a topology file: its operators wait.

Random numbers derive from the seed of the record, its stream and the operator, so that a record
has the same results when it is replayed.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from typing import TYPE_CHECKING

from sojourn.app.application import App
from sojourn.app.checks import check_name
from sojourn.app.operator import TIME_LIMIT_S
from sojourn.app.schema import parse_schema
from sojourn.app.stream import Stream
from sojourn.errors import BadApplication

if TYPE_CHECKING:
    from sojourn.topology import Arrival, Operator, Topology

_SCHEMA = parse_schema("seed long")
_SEED_BITS = 63
# Service times are random: a long one must not exceed the time limit.
_LONGEST_TIMES_MEAN = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """The simulated work of an operator: it waits, and sends records to each stream."""

    operator: str
    seed: int
    service_s: float
    """The mean service time."""
    scv: float
    """The scv of service times: constant for 0, exponential for 1, gamma otherwise."""
    sends: tuple[tuple[str, float], ...]
    """Mean records by stream, rounded up or down at random; probabilities with *one_of*."""
    one_of: bool = False
    """Whether at most one stream gets a record."""

    def drawn(self, stream: str, seed: int) -> tuple[float, list[tuple[str, int]]]:
        """Draw the service time of the record *seed*, and stream and seed of its children.

        >>> work = Work(operator="a", seed=1, service_s=0.5, scv=0, sends=(("a-b", 2),))
        >>> seconds, children = work.drawn("lines", 7)
        >>> seconds, [stream for stream, _ in children]
        (0.5, ['a-b', 'a-b'])
        """
        random = Random(f"{self.seed} {self.operator} {stream} {seed}")  # noqa: S311
        return self._service_s(random), [
            (to, random.getrandbits(_SEED_BITS)) for to in self._targets(random)
        ]

    def _service_s(self, random: Random) -> float:
        if self.service_s == 0 or self.scv == 0:
            return self.service_s
        if self.scv == 1:
            return random.expovariate(1 / self.service_s)
        return random.gammavariate(1 / self.scv, self.service_s * self.scv)

    def _targets(self, random: Random) -> list[str]:
        if self.one_of:
            drawn = random.random()
            for stream, chance in self.sends:
                drawn -= chance
                if drawn < 0:
                    return [stream]
            return []
        sent: list[str] = []
        for stream, mean in self.sends:
            whole = int(mean)
            sent += [stream] * (whole + (random.random() < mean - whole))
        return sent


def stand_in(topology: "Topology", *, seed: int = 1) -> App:
    """Return an application with the service times and fan-outs of *topology*.

    Its sources are the `entrances`. Each pair of connected operators has a stream between them,
    and an operator without targets has a sink of its name. `transfer_s` is not simulated: real
    transfers take its place. Raise `BadApplication` if hosts do not support the topology.

    >>> from sojourn.topology.file import parse_topology
    >>> app = stand_in(parse_topology('''
    ... format: 1
    ... name: words
    ... arrivals: {lines: {per_s: 40, into: split}}
    ... operators: {split: {service_s: 0.02, emits: {count: 6}}, count: {service_s: 0.001}}
    ... '''))
    >>> list(app.streams), list(app.sinks)
    (['lines', 'split-count', 'count'], ['count'])
    """
    app = App(topology.name)
    reads: dict[str, list[Stream]] = {name: [] for name in topology.operator}
    writes: dict[str, list[tuple[Stream, float]]] = {name: [] for name in topology.operator}
    for arrival in entrances(topology):
        reads[str(arrival.into)].append(app.source(arrival.name, schema=_SCHEMA))
    for operator in topology.operators:
        check_name("operators", operator.name)
        for target, mean in operator.emits.items():
            stream = _stream(app, f"{operator.name}-{target}")
            reads[target].append(stream)
            writes[operator.name].append((stream, mean))
        if not operator.fan_outs:
            done = _stream(app, operator.name)
            app.sink(done)
            writes[operator.name].append((done, 1.0))
    for operator in topology.operators:
        _add(app, operator, reads[operator.name], writes[operator.name], seed)
    app.check_graph()
    return app


def entrances(topology: "Topology") -> "tuple[Arrival, ...]":
    """Return the arrivals, with an arrival into several operators split into one for each.

    >>> from sojourn.topology import Arrival, Operator, Topology
    >>> lines = Arrival(name="lines", per_s=40, into={"a": 0.75, "b": 0.25}, scv=0)
    >>> both = tuple(Operator(name=name, service_s=0.01) for name in "ab")
    >>> [
    ...     (arrival.name, arrival.per_s, arrival.scv)
    ...     for arrival in entrances(Topology(name="two", arrivals=(lines,), operators=both))
    ... ]
    [('lines-a', 30.0, 0.25), ('lines-b', 10.0, 0.75)]
    """
    return tuple(
        replace(
            arrival,
            name=arrival.name if len(arrival.shares) == 1 else f"{arrival.name}-{target}",
            per_s=arrival.per_s * share,
            into=target,
            scv=share * arrival.scv + max(0.0, 1 - share),
        )
        for arrival in topology.arrivals
        for target, share in arrival.shares.items()
    )


def _stream(app: App, name: str) -> Stream:
    """Add a stream; the names of an operator a-b and a stream from a to b must not clash."""
    while name in app.streams:
        name += "-2"
    return app.stream(name, schema=_SCHEMA)


def _add(
    app: App,
    operator: "Operator",
    reads: list[Stream],
    writes: list[tuple[Stream, float]],
    seed: int,
) -> None:
    place = f"operators.{operator.name}"
    if operator.dispatch != "shared":
        problem = f"{operator.dispatch} is not supported by hosts, which have one queue"
        raise BadApplication(f"{place}.dispatch", problem, "write dispatch: shared")
    if not reads:
        way_out = "send it some, or leave it out"
        raise BadApplication(place, "no record ever reaches it", way_out)
    service_s = operator.service_s / operator.speed
    sends = {stream.name: mean for stream, mean in writes}
    work = Work(
        operator=operator.name,
        seed=seed,
        service_s=service_s,
        scv=operator.service_scv,
        sends=tuple(sends.items()),
        one_of=operator.route == "one_of",
    )
    app.operator(
        reads=reads,
        emits={stream.name: stream for stream, _ in writes},
        name=operator.name,
        service_s=service_s,
        service_scv=operator.service_scv,
        sends=sends,
        min_processors=operator.min_processors,
        max_processors=operator.max_processors,
        time_limit_s=max(TIME_LIMIT_S, _LONGEST_TIMES_MEAN * service_s),
    )(partial(_serve, work))


def _serve(work: Work, stream: str, record: tuple[int]) -> Iterator[tuple[str, tuple[int]]]:
    service_s, children = work.drawn(stream, *record)
    time.sleep(service_s)
    for to, seed in children:
        yield to, (seed,)

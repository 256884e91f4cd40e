"""An application as queries, topics and hosts: worked out before anything starts."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sojourn.app.application import App
from sojourn.app.graph import readers
from sojourn.app.operator import NativeOperator, PythonOperator
from sojourn.errors import BadInput
from sojourn.host.server import HostSettings
from sojourn.spark.offsets import Offsets
from sojourn.spark.rows import Route
from sojourn.topology import Topology

__all__ = ["Layout", "check_slots", "spare_slots"]

_LONGEST_SOCKET = 107
_SPARE_SLOTS = 8
_JOB = "sojourn.host.operator_job:of_application"


@dataclass(frozen=True, slots=True)
class Layout:
    """Where streams and operators of *app*, found at *address*, are on Spark."""

    app: App
    address: str

    @property
    def functions(self) -> dict[str, PythonOperator]:
        """The operators that run on hosts."""
        return {
            name: operator
            for name, operator in self.app.operators.items()
            if isinstance(operator, PythonOperator)
        }

    @property
    def natives(self) -> dict[str, NativeOperator]:
        """The operators that Spark runs itself."""
        return {
            name: operator
            for name, operator in self.app.operators.items()
            if isinstance(operator, NativeOperator)
        }

    @property
    def misfits(self) -> dict[str, str]:
        """The aggregations, by the query that makes dead letters of what does not fit them."""
        return {
            f"misfits of {name}": name
            for name, operator in self.natives.items()
            if operator.kind == "aggregate"
        }

    @property
    def dead_letters(self) -> str:
        """The topic of records that could not be done."""
        return f"{self.app.name}.dead-letters"

    @property
    def topics(self) -> list[str]:
        """All topics."""
        once = [sink.name for sink in self.app.sinks.values() if sink.deduplicate]
        return [*map(self.app.topic, (*self.app.streams, *once)), self.dead_letters]

    @property
    def inner_topics(self) -> list[str]:
        """The topics that nobody outside is meant to write or to read."""
        outside = {*self.app.sources, *(sink.stream.name for sink in self.app.sinks.values())}
        return [self.app.topic(name) for name in self.app.streams if name not in outside]

    @property
    def required_topics(self) -> dict[str, str]:
        """The topics that others must have made, and the sources that name them."""
        return {topic: f"source {source}" for source, topic in self.app.required_topics.items()}

    def reads(self, operator: str) -> dict[str, str]:
        """Return the streams that an operator reads, by topic."""
        return {self.app.topic(s.name): s.name for s in self.app.operators[operator].reads}

    def writes(self, operator: str) -> dict[str, str]:
        """Return the topics that an operator writes, by stream."""
        return {s.name: self.app.topic(s.name) for s in self.app.operators[operator].emits}

    def route(
        self,
        operator: str,
        *,
        trace_per_s: float,
        most_bytes: int,
        marks: Mapping[str, str],
    ) -> Route:
        """Return where the records of a function come from and go to.

        Ids of roots carry *marks*, by topic.
        """
        read = self.app.operators[operator].reads
        topic = self.app.topic
        return Route(
            operator=operator,
            reads=self.reads(operator),
            writes=self.writes(operator),
            dead_letters=self.dead_letters,
            keyed={topic(s.name): s for s in read if s.key},
            everyone=frozenset(topic(s.name) for s in read if s.grouping == "broadcast"),
            trace_per_s=trace_per_s,
            most_bytes=most_bytes,
            marks=marks,
        )

    def host(self, operator: str, folder: Path, processors: int) -> HostSettings:
        """Return what the host of a function runs."""
        function = self.functions[operator]
        return HostSettings(
            name=operator,
            job=_JOB,
            argument=f"{self.address} {operator}",
            folder=folder / operator,
            processors=processors,
            on_error=function.on_error,
            limit_s=function.time_limit_s,
            temporary=folder,
        )

    def socket(self, operator: str, folder: Path) -> Path:
        """Return where the host of a function is reached."""
        return folder / operator / "feed.sock"

    def check_sockets(self, folder: Path) -> None:
        """Raise `BadInput` if the system has no room for the name of a socket in *folder*."""
        for operator in self.functions:
            path = str(self.socket(operator, folder))
            if len(path.encode()) > _LONGEST_SOCKET:
                raise BadInput(
                    f"{path} is too long for a Unix socket (at most {_LONGEST_SOCKET} bytes); "
                    f"set TMPDIR to a shorter folder, or give {operator} a shorter name"
                )

    def followers(self) -> dict[str, list[str]]:
        """Return the functions that read each stream: what a tree is followed through."""
        functions = self.functions
        return {
            stream: [name for name in readers(stream, self.app.operators) if name in functions]
            for stream in self.app.streams
        }

    def entries(self) -> set[str]:
        """Return the operators that read from outside."""
        return {
            name for source in self.app.sources for name in readers(source, self.app.operators)
        }

    def arrivals(self) -> dict[str, str]:
        """Return the source of each arrival of the application's topology, by its name."""
        named = {}
        for source in self.app.sources:
            into = readers(source, self.app.operators)
            for reader in into:
                named[source if len(into) == 1 else f"{source} to {reader}"] = source
        return named

    def expected_rates(
        self, topology: Topology, offsets: Offsets, since_s: float
    ) -> Mapping[str, float]:
        """Return the records per second that operators will get, as sources have it *since_s*.

        As the topology declares it, where nothing came.
        """
        offsets.look()
        until_s = time.monotonic()
        came = sum(
            sum(offsets.arrivals([self.app.topic(source)], since_s, until_s, 1))
            for source in self.arrivals().values()
        )
        if not came:
            return topology.rates
        per_s = came / (until_s - since_s)
        return topology.scaled(per_s / topology.arrivals_per_s).rates

    def slots(self, partitions: Mapping[str, int], state_partitions: int) -> dict[str, int]:
        """Return the tasks that each query holds for as long as it runs."""
        held = {
            name: sum(partitions[topic] for topic in self.reads(name))
            + (state_partitions if getattr(operator, "kind", "") == "aggregate" else 0)
            for name, operator in self.app.operators.items()
        }
        for query, name in self.misfits.items():
            held[query] = sum(partitions[topic] for topic in self.reads(name))
        for sink in self.app.sinks.values():
            if sink.deduplicate:
                held[f"sink {sink.name}"] = partitions[self.app.topic(sink.stream.name)]
        return held


def spare_slots(needed: int) -> int:
    """Return how many tasks Spark may run at once where *needed* hold a slot.

    Partitions that are added need more, and a slot that nobody uses costs nothing.

    >>> spare_slots(3)
    14
    """
    return 2 * needed + _SPARE_SLOTS


def check_slots(held: Mapping[str, int], slots: int) -> None:
    """Raise `BadInput` if Spark runs fewer tasks than queries hold: some would never start.

    >>> check_slots({"split": 3, "count": 2}, 4)
    Traceback (most recent call last):
    ...
    sojourn.errors.BadInput: Spark has 4 slots, and 5 are needed (split 3, count 2); ...
    """
    needed = sum(held.values())
    if slots < needed:
        each = ", ".join(f"{name} {number}" for name, number in held.items())
        raise BadInput(
            f"Spark has {slots} slots, and {needed} are needed ({each}); "
            f"set slots to {needed} or more"
        )

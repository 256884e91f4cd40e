"""The layout of an application: its queries, topics and hosts, known before anything starts."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from sojourn.app.application import App
from sojourn.app.loading import topology_file
from sojourn.app.operator import NativeOperator, PythonOperator
from sojourn.app.parts import Part, parts_of, streams_in_kafka
from sojourn.app.reminder import reminders_of
from sojourn.app.stream import Sink
from sojourn.app.streams import readers
from sojourn.errors import BadInput
from sojourn.spark.driver.state.checkpoints import Checkpoints
from sojourn.spark.task.rows import Route
from sojourn.spark.wire.headers import marked
from sojourn.spark.wire.host_address import HostAddress
from sojourn.spark.wire.host_settings import SOCKET, HostSettings, OperatorSettings

STATE_PARTITIONS = 1
"""State partitions of native aggregations; on one machine more would only occupy slots."""
_LONGEST_SOCKET = 107
_JOB = "sojourn.spark.processor.operator_job:of_application"


@dataclass(frozen=True)
class Layout:
    """The assignment of streams to topics, and of operators to queries and hosts."""

    app: App
    address: str
    """The module or topology file from which hosts load the application."""

    @cached_property
    def parts(self) -> Mapping[str, Part]:
        return {part.name: part for part in parts_of(self.app)}

    @cached_property
    def part_of(self) -> Mapping[str, Part]:
        """The part of each Python operator and each projection."""
        return {
            name: part
            for part in self.parts.values()
            for name in (*part.operators, *part.projections)
        }

    @cached_property
    def _kafka(self) -> frozenset[str]:
        return streams_in_kafka(self.app)

    @property
    def file(self) -> Path | None:
        """The topology file of the application; None if the application is a module."""
        return topology_file(self.address)

    def on_nodes(self) -> "Layout":
        """Return the layout with the address of the application on executors.

        Spark puts files that it ships into the working folder of an executor.
        """
        return self if self.file is None else replace(self, address=self.file.name)

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
        """The operators that Spark runs itself, each in a query of its own."""
        return {
            name: operator
            for name, operator in self._of_spark.items()
            if name not in self.part_of
        }

    @property
    def _of_spark(self) -> dict[str, NativeOperator]:
        return {
            name: operator
            for name, operator in self.app.operators.items()
            if isinstance(operator, NativeOperator)
        }

    def before(self, part: str) -> dict[str, NativeOperator]:
        """Return the projections before the functions of a part, by input topic."""
        projections = [self._of_spark[name] for name in self.parts[part].before]
        return {self.app.topic(each.reads[0].name): each for each in projections}

    def behind(self, part: str) -> dict[str, NativeOperator]:
        """Return the projections behind the functions of a part, by output topic."""
        projections = [self._of_spark[name] for name in self.parts[part].behind]
        return {self.app.topic(each.stream.name): each for each in projections}

    @property
    def misfits(self) -> dict[str, str]:
        """The aggregations, by the query that makes dead letters of records that do not fit."""
        return {
            f"misfits of {name}": name
            for name, operator in self.natives.items()
            if operator.kind == "aggregate"
        }

    @property
    def dead_letters(self) -> str:
        """The topic of records that could not be processed."""
        return f"{self.app.name}.dead-letters"

    @property
    def retries(self) -> str:
        """The topic through which dead letters are retried that were never in another topic."""
        return f"{self.app.name}.retries"

    @property
    def streams(self) -> list[str]:
        written = {name for part in self.parts.values() for name in part.writes}
        there = self._kafka | written
        return [name for name in self.app.streams if name in there]

    @property
    def topics(self) -> list[str]:
        """All topics except the outputs of deduplicating sinks."""
        retries = [self.retries] if any(map(self._retries, self.parts.values())) else []
        return [*map(self.app.topic, self.streams), self.dead_letters, *retries]

    @property
    def deduplicated(self) -> dict[str, Sink]:
        """The sinks that drop duplicates, by the query that writes each."""
        sinks = self.app.sinks.values()
        return {f"sink {sink.name}": sink for sink in sinks if sink.deduplicate}

    @property
    def inner_topics(self) -> list[str]:
        """The topics for this application alone: neither of sources nor of sinks."""
        outside = {*self.app.sources, *(sink.stream.name for sink in self.app.sinks.values())}
        return [self.app.topic(name) for name in self.streams if name not in outside]

    @property
    def passing_topics(self) -> list[str]:
        """The inner topics whose records can be deleted once they are read.

        Topics of durable streams are not among them: other consumers may read those.
        """
        if self.app.durable_streams:
            return []
        streams = [name for name in self.streams if not self.app.streams[name].durable]
        inner = set(self.inner_topics) & set(map(self.app.topic, streams))
        return [topic for topic in self.topics if topic in inner or topic == self.retries]

    def reads(self, operator: str) -> dict[str, str]:
        """Return the streams that an operator reads from Kafka, by topic.

        The output of a projection before it has the topic that the projection reads.
        """
        read = [s.name for s in self.app.operators[operator].reads]
        found = {self.app.topic(name): name for name in read if name in self._kafka}
        if operator in self.part_of:
            projections = self.before(self.part_of[operator].name)
            made = {topic: each.stream.name for topic, each in projections.items()}
            found |= {topic: name for topic, name in made.items() if name in read}
        return found

    def writes(self, operator: str) -> dict[str, str]:
        """Return the topics that an operator writes, by stream."""
        there = set(self.streams)
        written = [s.name for s in self.app.operators[operator].emits if s.name in there]
        return {name: self.app.topic(name) for name in written}

    def query_reads(self, query: str) -> list[str]:
        """Return the topics that a query reads: that of a part, or of Spark's own operator."""
        part = self.parts.get(query)
        if part is None:
            return list(self.reads(query))
        retries = [self.retries] if self._retries(part) else []
        return [*map(self.app.topic, part.reads), *retries]

    @property
    def handed_over(self) -> list[str]:
        """The topics whose records Spark sends to Python: to hosts or deduplicating sinks."""
        reads, queries = self.all_reads, (*self.parts, *self.deduplicated)
        return list(dict.fromkeys(topic for query in queries for topic in reads[query]))

    @property
    def queries(self) -> list[str]:
        """The queries of parts and of Spark's other operators, in the order of operators."""
        names = (
            self.part_of[name].name if name in self.part_of else name
            for name in self.app.operators
        )
        return list(dict.fromkeys(names))

    @property
    def all_reads(self) -> dict[str, list[str]]:
        """The topics that each query reads, also those of misfits and deduplicated sinks."""
        reads = {query: self.query_reads(query) for query in self.queries}
        reads |= {query: reads[name] for query, name in self.misfits.items()}
        for query, sink in self.deduplicated.items():
            reads[query] = [self.app.topic(sink.stream.name)]
        return reads

    def route(
        self,
        part: str,
        *,
        trace_per_s: float,
        most_bytes: int,
        marks: Mapping[str, str],
        partitions: Mapping[str, int],
        signing_key: bytes = b"",
    ) -> Route:
        """Return the route of a part's records from input topics to output topics.

        *marks* are the marks in ids of roots, by topic. *partitions* are the numbers of
        partitions, by topic.
        """
        here, topic, before = self.parts[part], self.app.topic, self.before(part)
        read = [(name, s) for name in here.operators for s in self.app.operators[name].reads]
        return Route(
            part=part,
            operators=here.operators,
            reads={
                topic(name): before[topic(name)].name if topic(name) in before else name
                for name in here.reads
            },
            writes={name: topic(name) for name in here.writes},
            before={at: (each.name, each.reads[0].name) for at, each in before.items()},
            behind={each.name: each.reads[0].name for each in self.behind(part).values()},
            dead_letters=self.dead_letters,
            retries=self.retries if self._retries(here) else "",
            keyed={
                stream: tuple((name, s) for name, s in read if s.name == stream and s.key)
                for stream in (*here.reads, *here.inner)
            },
            trace_per_s=trace_per_s,
            most_bytes=most_bytes,
            marks=marks,
            partitions={
                topic(name): partitions[topic(name)]
                for name in here.writes
                if name in self._deduplicated_streams and topic(name) in partitions
            },
            deduplicates=self._deduplicates(here),
            signing_key=signing_key,
        )

    @property
    def signing_projections(self) -> frozenset[str]:
        """The queries of Spark's own that sign the input offsets of their records.

        Readers drop the duplicates that they write.
        """
        return frozenset(
            name
            for name, each in self.natives.items()
            if each.kind == "project" and each.stream.name in self._deduplicated_streams
        )

    @property
    def _deduplicated_streams(self) -> set[str]:
        """The streams whose duplicates are dropped, for each partition separately.

        Those are the streams of deduplicated sinks, the inputs of parts with a state, and all
        streams upstream of them through other parts and projections: a duplicate that passes
        one of those has another offset behind it, so it must be dropped before.
        """
        found = {sink.stream.name for sink in self.deduplicated.values()}
        for part in self.parts.values():
            if self._stateful(part):
                found.update(part.reads)
        waiting = list(found)
        while waiting:
            name = waiting.pop()
            read = {
                *(n for part in self.parts.values() if name in part.writes for n in part.reads),
                *(
                    each.reads[0].name
                    for each in self.natives.values()
                    if each.kind == "project" and each.stream.name == name
                ),
            }
            waiting += read - found
            found |= read
        return found

    def _deduplicates(self, part: Part) -> frozenset[str]:
        """Return the topics in which a part drops duplicates.

        Sources are among them only for parts with a state. They have each record once, or
        with the id of its producer, by which only states and sinks deduplicate.
        """
        if self._stateful(part):
            return frozenset(map(self.app.topic, part.reads))
        if self._deduplicated_streams.isdisjoint(part.writes):
            return frozenset()
        return frozenset(self.app.topic(n) for n in part.reads if n not in self.app.sources)

    def reminder_marks(self, epoch: str) -> dict[str, str]:
        """Return the marks in ids of reminders, by stream; their streams have no topic."""
        parts = self.parts.values()
        return {reminders_of(name): epoch for part in parts for name in self._stateful(part)}

    def _stateful(self, part: Part) -> tuple[str, ...]:
        return tuple(name for name in part.operators if self.functions[name].state is not None)

    def _retries(self, part: Part) -> bool:
        """Return whether a part has records that were never in a topic."""
        return bool(part.inner or self._stateful(part))

    def host(
        self,
        part: str,
        folder: Path,
        state: Checkpoints,
        allocation: Mapping[str, int],
        epoch: str = "",
    ) -> HostSettings:
        """Return the settings of the host of a part; *epoch* is in ids of reminders."""
        here, operators = self.parts[part], self.app.operators
        reminders = {reminders_of(name): name for name in self._stateful(here)}
        behind = {name: operators[name].reads[0].name for name in here.behind}
        return HostSettings(
            name=part,
            operators={
                name: OperatorSettings(
                    job=_JOB,
                    argument=f"{self.address} {name}",
                    processors=allocation[name],
                    on_error=function.on_error,
                    limit_s=function.time_limit_s,
                )
                for name, function in self.functions.items()
                if name in here.operators
            },
            readers={
                stream: tuple(
                    name for name in readers(stream, operators) if name in here.operators
                )
                for stream in (*here.reads, *here.inner)
            }
            | {stream: (name,) for stream, name in reminders.items()},
            emits={
                name: tuple(stream.name for stream in operators[name].emits)
                for name in here.operators
            },
            leaving=tuple(dict.fromkeys((*here.writes, *behind.values()))),
            projected=here.before,
            behind=behind,
            everyone=tuple(
                (name, s.name)
                for name in here.operators
                for s in operators[name].reads
                if s.grouping == "broadcast"
            ),
            inner=(*here.inner, *reminders),
            stateful=tuple(reminders.values()),
            nulls=tuple(name for name in here.operators if self.functions[name].nulls),
            reminded={name: marked(stream, epoch) for stream, name in reminders.items()},
            ttl_s={
                name: ttl_s
                for name in reminders.values()
                if (ttl_s := self.functions[name].ttl_s) is not None
            },
            folder=folder / part,
            cuts=state.cuts(part),
            logs=state.logs,
            temporary=folder,
            id_window=self.app.id_window,
        )

    def socket(self, part: str, folder: Path) -> Path:
        return folder / part / SOCKET

    def addresses(self, folder: Path) -> dict[str, HostAddress]:
        """Return the addresses of hosts for relays on this machine, by part."""
        return {part: HostAddress(path=str(self.socket(part, folder))) for part in self.parts}

    def check_sockets(self, folder: Path) -> None:
        """Raise `BadInput` if the path of a socket in *folder* is too long for the system."""
        for part in self.parts:
            path = str(self.socket(part, folder))
            if len(path.encode()) > _LONGEST_SOCKET:
                raise BadInput(
                    f"{path} is too long for a Unix socket (at most {_LONGEST_SOCKET} bytes); "
                    f"set TMPDIR to a shorter folder, or give {part} a shorter name"
                )

    def followers(self) -> dict[str, list[str]]:
        """Return the functions that read each stream; trees of records follow them."""
        functions = self.functions
        return {
            stream: [name for name in readers(stream, self.app.operators) if name in functions]
            for stream in self.app.streams
        }

    def entries(self) -> set[str]:
        """Return the operators that roots enter: readers of a source, or of its projection."""
        first = {
            name for source in self.app.sources for name in readers(source, self.app.operators)
        }
        changed = {name for part in self.parts.values() for name in part.before} & first
        behind = {name for made in changed for name in readers(made, self.app.operators)}
        return (first - changed) | behind

    def arrivals(self) -> dict[str, str]:
        """Return the source of each arrival of the application's topology, by its name."""
        named = {}
        for source in self.app.sources:
            into = readers(source, self.app.operators)
            for reader in into:
                named[source if len(into) == 1 else f"{source} to {reader}"] = source
        return named

    def slots(self, partitions: Mapping[str, int]) -> dict[str, int]:
        """Return the tasks that each query holds for as long as it runs."""
        held = {
            query: sum(partitions[topic] for topic in topics)
            for query, topics in self.all_reads.items()
        }
        for name in self.misfits.values():
            # the tasks after the shuffle of an aggregation run concurrently with its readers
            held[name] += STATE_PARTITIONS
        return held


def check_slots(held: Mapping[str, int], slots: int) -> None:
    """Raise `BadInput` if queries hold more slots than Spark has: some would never start.

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

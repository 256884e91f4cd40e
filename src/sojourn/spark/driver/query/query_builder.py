"""The queries of an application: their topics, their start offsets, and their start."""

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from sojourn.app.stream import Sink
from sojourn.errors import BadInput
from sojourn.spark.driver.kafka.cluster import Cluster
from sojourn.spark.driver.kafka.deleted_records import LostRecords, lost_records
from sojourn.spark.driver.kafka.offsets import Offsets
from sojourn.spark.driver.layout import Layout
from sojourn.spark.driver.native import NativeQuery, native_frame, start_misfits, start_native
from sojourn.spark.driver.query.part_query import (
    PartQuery,
    Projections,
    part_frame,
    start_deduplication,
    start_part,
)
from sojourn.spark.driver.settings import SparkSettings
from sojourn.spark.driver.state.checkpoints import Checkpoints, Positions
from sojourn.spark.task.deduplicate.new_records import Deduplication
from sojourn.spark.wire.headers import marked
from sojourn.spark.wire.host_address import HostAddress
from sojourn.spark.wire.signed_inputs import SignedInputs

__all__ = ["STATE_PARTITIONS", "QueryBuilder", "StartQuery"]

STATE_PARTITIONS = 1
"""State partitions of native aggregations; on one machine more would only occupy slots."""

StartQuery = Callable[[], StreamingQuery]
"""Starts or restarts a query."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryBuilder:
    """Builds the queries of an application from its layout and the running processes."""

    layout: Layout
    settings: SparkSettings
    cluster: Cluster
    state: Checkpoints
    session: SparkSession
    hosts: Mapping[str, HostAddress]
    """Addresses of hosts, by part."""
    marks: Mapping[str, str]
    """Marks in the ids of roots, by topic."""
    partitions: Mapping[str, int]
    """Numbers of partitions, by topic."""
    signing_key: bytes = field(default=b"", repr=False)
    """Key that signs input headers."""
    fences: Mapping[str, float] = field(default_factory=dict)
    """Age in seconds from which brokers reject a record, by topic."""
    ends: str = ""
    """Prefix of the system properties with end offsets (`KnownEnds`); empty without them."""

    def begin(self, offsets: Offsets, *, goes_on: bool) -> None:
        """Store the start offsets of new queries; of all queries unless the state *goes on*.

        In topics between operators these are the end offsets: older records belong to another
        run, or precede an operator that is new. If this start fails before the first commit,
        the next one begins at the same offsets.
        """
        app = self.layout.app
        begun, ends = offsets.partitions(self.settings.starting), offsets.partitions()
        sources = {app.topic(name) for name in app.sources}
        starting = {topic: (begun if topic in sources else ends)[topic] for topic in ends}
        reads = self._reads
        for query, topics in reads.items():
            begins = {topic: starting[topic] for topic in topics}
            self.state.begin(query, begins, anew=not goes_on)
        for query, name in self.layout.misfits.items():
            # a state of an earlier version has no such query: begin where the operator is
            at = self.state.positions(name, {topic: starting[topic] for topic in reads[name]})
            self.state.begin(query, at, anew=not goes_on)

    @property
    def _reads(self) -> dict[str, tuple[str, ...]]:
        """Topics that each query reads, without the queries of misfits."""
        layout = self.layout
        reads = {name: tuple(layout.query_reads(name)) for name in layout.queries}
        for sink in layout.deduplicated:
            reads[_query(sink)] = (layout.app.topic(sink.stream.name),)
        return reads

    def lost(self, offsets: Offsets) -> list[LostRecords]:
        """Return the records that Kafka deleted before queries read them."""
        earliest = offsets.partitions("earliest")
        return lost_records(
            [
                self.state.positions(query, {topic: earliest[topic] for topic in topics})
                for query, topics in self._all_reads.items()
            ],
            earliest,
        )

    def skip(self, lost: Iterable[LostRecords]) -> None:
        """Move all queries past the lost records."""
        ends: dict[str, dict[int, int]] = {}
        for each in lost:
            ends.setdefault(each.topic, {})[each.partition] = each.end
        for query in self._all_reads:
            self.state.skip_to(query, ends)

    @property
    def _all_reads(self) -> dict[str, tuple[str, ...]]:
        """Topics that each query reads, with the queries of misfits."""
        reads = self._reads
        return reads | {query: reads[name] for query, name in self.layout.misfits.items()}

    def positions(self, offsets: Offsets) -> dict[str, dict[str, dict[int, int]]]:
        """Return the offsets at which each query resumes, or starts for the first time."""
        earliest = offsets.partitions("earliest")
        return {
            name: self.state.positions(
                name, {topic: earliest[topic] for topic in self.layout.query_reads(name)}
            )
            for name in self.layout.queries
        }

    def committed(self, topics: Collection[str]) -> list[dict[str, dict[int, int]]]:
        """Return the offsets from which each query may read *topics* again.

        After a power failure a query may lose its last `kept_batches` commits.
        """
        queries = [*self.layout.queries, *self.layout.misfits]
        of_native = self.layout.misfits
        reads = {name: self.layout.query_reads(of_native.get(name, name)) for name in queries}
        nothing = {topic: dict.fromkeys(range(self.partitions[topic]), 0) for topic in topics}
        return [
            self.state.positions(
                name,
                {topic: nothing[topic] for topic in read if topic in nothing},
                before=self.settings.kept_batches,
            )
            for name, read in reads.items()
        ]

    def query(self, name: str, starting: Positions) -> StartQuery:
        """Return a function that starts the query of a part or of a native operator."""
        if name in self.layout.parts:
            return partial(start_part, self.session, self._part(name, starting))
        return partial(start_native, self.session, self._native(name, name, starting))

    def frame(self, name: str) -> DataFrame:
        """Return the rows that such a query writes, to show its plan."""
        if name in self.layout.parts:
            return part_frame(self.session, self._part(name, {}))
        return native_frame(self.session, self._native(name, name, {}))

    def _part(self, name: str, starting: Positions) -> PartQuery:
        layout, settings = self.layout, self.settings
        # operators of a part share one query, so the smallest limit applies to all
        told = [layout.functions[o].records_per_transfer for o in layout.parts[name].operators]
        return PartQuery(
            route=layout.route(
                name,
                trace_per_s=settings.trace_per_s,
                most_bytes=settings.most_bytes,
                marks=self.marks,
                partitions=self.partitions,
                signing_key=self.signing_key,
            ),
            kafka=self.cluster.for_spark,
            host=self.hosts[name],
            checkpoint=self.state.checkpoint(name),
            projections=Projections(before=layout.before(name), behind=layout.behind(name)),
            starting=_as_spark(starting),
            batch_s=settings.batch_s,
            records_per_transfer=min(filter(None, told), default=None),
            ends=self.ends,
            relays_tell_ends=not settings.runs_on.is_local,
        )

    def misfits(self, starting: Mapping[str, Positions]) -> dict[str, StartQuery]:
        """Return functions that start the queries of records that do not fit an aggregation."""
        queries: dict[str, StartQuery] = {}
        for query, name in self.layout.misfits.items():
            native = self._native(name, query, self.state.positions(query, starting[name]))
            queries[query] = partial(start_misfits, self.session, native, query)
        return queries

    def _native(self, name: str, query: str, starting: Positions) -> NativeQuery:
        layout, settings = self.layout, self.settings
        operator = layout.natives[name]
        reads = layout.app.topic(operator.reads[0].name)
        return NativeQuery(
            operator=operator,
            servers=self.cluster.servers,
            kafka=self.cluster.for_spark,
            reads=reads,
            mark=self.marks.get(reads, ""),
            writes=layout.app.topic(operator.emits[0].name),
            dead_letters=layout.dead_letters,
            checkpoint=self.state.checkpoint(query),
            partitions=STATE_PARTITIONS,
            spread=layout.spread(name, self.partitions),
            starting=_as_spark(starting),
            batch_s=settings.batch_s,
            most_bytes=settings.most_bytes,
        )

    def sinks(self, offsets: Offsets) -> dict[str, StartQuery]:
        """Return functions that start the queries of deduplicated sinks."""
        earliest = offsets.partitions("earliest")
        return {_query(sink): self._sink(sink, earliest) for sink in self.layout.deduplicated}

    def _sink(self, sink: Sink, earliest: Positions) -> StartQuery:
        layout, query, partitions = self.layout, _query(sink), self.partitions
        topic, writes = layout.app.topic(sink.stream.name), layout.app.topic(sink.name)
        if partitions[writes] < partitions[topic]:
            raise BadInput(
                f"{query}: {writes} has {partitions[writes]} partitions, and {topic}, which it "
                f"reads, has {partitions[topic]}; add partitions to {writes}"
            )
        deduplication = Deduplication(
            name=sink.name,
            reads=topic,
            writes=writes,
            window=sink.window,
            mark=self.marks.get(topic, ""),
            inputs=SignedInputs(self.signing_key, self._marked_topics),
            fence_s=self.fences.get(writes, 0.0),
            checkpoint=self.state.checkpoint(query),
            clients=self.cluster.for_clients,
            spark=self.cluster.for_spark,
            starting=_as_spark(self.state.positions(query, {topic: earliest[topic]})),
            batch_s=self.settings.batch_s,
            kept_batches=self.settings.kept_batches,
            ends=self.ends,
        )
        return partial(start_deduplication, self.session, deduplication)

    @property
    def _marked_topics(self) -> frozenset[str]:
        """Topics with their marks, as they are written in ids."""
        return frozenset(marked(topic, mark) for topic, mark in self.marks.items())


def _query(sink: Sink) -> str:
    return f"sink {sink.name}"


def _as_spark(positions: Positions) -> str:
    """Return offsets in the JSON format of Spark's Kafka source."""
    return json.dumps(
        {topic: {str(p): n for p, n in parts.items()} for topic, parts in positions.items()}
    )

"""The queries of an application: topics, start offsets, start, and the plans of Spark."""

import json
import re
import tempfile
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from sojourn.app.application import App
from sojourn.app.stream import Sink
from sojourn.errors import BadInput
from sojourn.spark.driver.jvm.jars import resolve_jars
from sojourn.spark.driver.jvm.java import find_java
from sojourn.spark.driver.jvm.session import end_session, new_session
from sojourn.spark.driver.kafka.cluster import Cluster
from sojourn.spark.driver.kafka.deleted_records import LostRecords, lost_records
from sojourn.spark.driver.kafka.offsets import Offsets
from sojourn.spark.driver.layout import STATE_PARTITIONS, Layout
from sojourn.spark.driver.native.frame import Address
from sojourn.spark.driver.native.query import NativeQuery, misfits_frame, native_frame
from sojourn.spark.driver.query.part_query import PartQuery, deduplicated_frame, part_frame
from sojourn.spark.driver.query.real_time import start_real_time
from sojourn.spark.driver.settings import SparkSettings
from sojourn.spark.driver.state.batch_files import Positions
from sojourn.spark.driver.state.checkpoints import Checkpoints
from sojourn.spark.task.deduplication import Deduplication
from sojourn.spark.wire.headers import marked
from sojourn.spark.wire.host_address import HostAddress
from sojourn.spark.wire.signed_inputs import SignedInputs

# Planning needs an address, but connects to no broker.
_NOWHERE = "localhost:9092"
# Added by `sojourn.spark.driver.query.real_time`.
_PADDING = re.compile("0x0{100,}")

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
        app, aggregations = self.layout.app, self.layout.misfits
        begun, ends = offsets.partitions(self.settings.starting), offsets.partitions()
        sources = {app.topic(name) for name in app.sources}
        starting = {topic: (begun if topic in sources else ends)[topic] for topic in ends}
        for query, topics in self.layout.all_reads.items():
            begins: Positions = {topic: starting[topic] for topic in topics}
            if query in aggregations:
                # a state of an earlier version has no such query: begin where the operator is
                begins = self.state.positions(aggregations[query], begins)
            self.state.begin(query, begins, anew=not goes_on)

    def lost(self, offsets: Offsets) -> list[LostRecords]:
        """Return the records that Kafka deleted before queries read them."""
        earliest = offsets.partitions("earliest")
        queries = self.layout.all_reads
        return lost_records([self._position(query, earliest) for query in queries], earliest)

    def skip(self, lost: Iterable[LostRecords]) -> None:
        ends: dict[str, dict[int, int]] = {}
        for each in lost:
            ends.setdefault(each.topic, {})[each.partition] = each.end
        for query in self.layout.all_reads:
            self.state.skip_to(query, ends)

    def positions(self, offsets: Offsets) -> dict[str, dict[str, dict[int, int]]]:
        """Return the offsets at which each query resumes, or starts for the first time."""
        earliest = offsets.partitions("earliest")
        return {name: self._position(name, earliest) for name in self.layout.queries}

    def committed(self, topics: Collection[str]) -> list[dict[str, dict[int, int]]]:
        """Return the offsets from which each query may read *topics* again.

        After a power failure a query may lose its last `kept_batches` commits.
        """
        nothing = {topic: dict.fromkeys(range(self.partitions[topic]), 0) for topic in topics}
        kept = self.settings.kept_batches
        return [self._position(query, nothing, kept) for query in self.layout.all_reads]

    def _position(
        self, query: str, new: Positions, before: int = 0
    ) -> dict[str, dict[int, int]]:
        """Return the committed offsets of a query, in the topics of *new* that it reads."""
        reads = {topic: new[topic] for topic in self.layout.all_reads[query] if topic in new}
        return self.state.positions(query, reads, before=before)

    def query(self, name: str, starting: Positions) -> StartQuery:
        """Return a function that starts the query of a part or of a native operator."""
        return self._starter(name, self.frame(name, starting))

    def frame(self, name: str, starting: Positions) -> Callable[[], DataFrame]:
        """Return a function that returns the rows that such a query writes."""
        if name in self.layout.parts:
            return partial(part_frame, self.session, self._part(name, starting))
        return partial(native_frame, self.session, self._native(name, starting))

    def misfits(self, starting: Mapping[str, Positions]) -> dict[str, StartQuery]:
        """Return functions that start the queries of records that do not fit an aggregation."""
        queries: dict[str, StartQuery] = {}
        for query, name in self.layout.misfits.items():
            native = self._native(name, self.state.positions(query, starting[name]))
            frame = partial(misfits_frame, self.session, native)
            queries[query] = self._starter(query, frame)
        return queries

    def sinks(self, offsets: Offsets) -> dict[str, StartQuery]:
        """Return functions that start the queries of deduplicated sinks."""
        earliest = offsets.partitions("earliest")
        queries: dict[str, StartQuery] = {}
        for query, sink in self.layout.deduplicated.items():
            deduplication = self._deduplication(query, sink, earliest)
            frame = partial(deduplicated_frame, self.session, deduplication)
            queries[query] = self._starter(query, frame)
        return queries

    def _starter(self, query: str, frame: Callable[[], DataFrame]) -> StartQuery:
        def start() -> StreamingQuery:
            return start_real_time(
                frame(),
                name=query,
                kafka=self.cluster.for_spark,
                checkpoint=self.state.checkpoint(query),
                batch_s=self.settings.batch_s,
            )

        return start

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
            before=layout.before(name),
            behind=layout.behind(name),
            starting=json.dumps(starting),
            batch_s=settings.batch_s,
            records_per_transfer=min(filter(None, told), default=None),
            ends=self.ends,
            relays_tell_ends=not settings.runs_on.is_local,
        )

    def _native(self, name: str, starting: Positions) -> NativeQuery:
        layout, settings = self.layout, self.settings
        operator = layout.natives[name]
        reads = layout.app.topic(operator.reads[0].name)
        writes = layout.app.topic(operator.stream.name)
        return NativeQuery(
            operator=operator,
            reads=reads,
            address=Address(
                writes=writes,
                dead_letters=layout.dead_letters,
                most_bytes=settings.most_bytes,
                mark=self.marks.get(reads, ""),
                partitions=self.partitions[writes] if name in layout.signing_projections else 0,
            ),
            kafka=self.cluster.for_spark,
            partitions=STATE_PARTITIONS,
            starting=json.dumps(starting),
        )

    def _deduplication(self, query: str, sink: Sink, earliest: Positions) -> Deduplication:
        layout, partitions = self.layout, self.partitions
        topic, writes = layout.app.topic(sink.stream.name), layout.app.topic(sink.name)
        if partitions[writes] < partitions[topic]:
            raise BadInput(
                f"{query}: {writes} has {partitions[writes]} partitions, and {topic}, which it "
                f"reads, has {partitions[topic]}; add partitions to {writes}"
            )
        return Deduplication(
            reads=topic,
            writes=writes,
            window=sink.window,
            mark=self.marks.get(topic, ""),
            inputs=SignedInputs(self.signing_key, self._marked_topics),
            fence_s=self.fences.get(writes, 0.0),
            checkpoint=self.state.checkpoint(query),
            clients=self.cluster.for_clients,
            spark=self.cluster.for_spark,
            starting=json.dumps(self._position(query, earliest)),
            kept_batches=self.settings.kept_batches,
            ends=self.ends,
        )

    @property
    def _marked_topics(self) -> frozenset[str]:
        """Topics with their marks, as they are written in ids."""
        return frozenset(marked(topic, mark) for topic, mark in self.marks.items())


def query_plans(app: App, address: str) -> dict[str, str]:
    """Return the physical plans of queries by name: of parts, and of Spark's own operators.

    None of them is started. Raise `EngineError` if there is no Java.
    """
    find_java()
    app.check()
    layout = Layout(app, address)
    with tempfile.TemporaryDirectory(prefix="sojourn-") as folder:
        log = Path(folder) / "spark.log"
        session = new_session(app.name, jars=resolve_jars(), slots=1, log=log)
        try:
            builder = QueryBuilder(
                layout=layout,
                settings=SparkSettings(),
                cluster=Cluster(_NOWHERE),
                state=Checkpoints(Path(folder)),
                session=session,
                hosts=layout.addresses(Path(folder)),
                marks={},
                partitions=dict.fromkeys(layout.topics, 1),
            )
            spark: Any = session.sparkContext._jvm  # noqa: SLF001
            told = spark.PythonSQLUtils.explainString
            plans = {
                name: told(builder.frame(name, {})()._jdf.queryExecution(), "simple")  # noqa: SLF001
                for name in layout.queries
            }
        finally:
            end_session(session)
    return {name: _PADDING.sub("0x00…", plan).strip() for name, plan in plans.items()}

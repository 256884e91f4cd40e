"""The queries of a run: their first offsets, their start and their supervisor."""

import time
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from uuid import uuid4

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from sojourn.files.logs import stamp
from sojourn.files.private_files import append_to
from sojourn.spark.driver.batches import end_in_time
from sojourn.spark.driver.disk_watch import DiskWatch
from sojourn.spark.driver.kafka.deleted_records import Trimming, refuse_lost, told_lost
from sojourn.spark.driver.query.query_builder import QueryBuilder, StartQuery
from sojourn.spark.driver.query.real_time import KnownEnds
from sojourn.spark.driver.run.processes import RunProcesses
from sojourn.spark.driver.run.run_kafka import RunKafka
from sojourn.spark.driver.run.run_state import RunState
from sojourn.spark.driver.run.start_request import RunEnd, StartRequest
from sojourn.spark.driver.supervisor import QuerySupervisor


def start_queries(
    request: StartRequest,
    state: RunState,
    kafka: RunKafka,
    processes: RunProcesses,
    stack: ExitStack,
) -> tuple[QuerySupervisor, dict[str, dict[str, dict[int, int]]]]:
    """Start all queries, which end with *stack*; from then on there is a state to resume.

    Return their supervisor, and the first offsets by query, topic and partition.
    """
    checkpoints, offsets, layout = state.checkpoints, kafka.offsets, request.layout
    session = processes.session
    builder = QueryBuilder(
        layout=layout,
        settings=request.settings,
        cluster=kafka.cluster,
        state=checkpoints,
        session=session,
        hosts=processes.addresses,
        marks=kafka.marks,
        partitions=kafka.partitions,
        signing_key=kafka.signing_key,
        fences=kafka.fences,
        ends=f"sojourn.ends.{uuid4().hex}",
    )
    _share_ends(request, kafka, processes, builder)
    _begin(request, kafka, builder)
    starting = builder.positions(offsets)
    supervisor = QuerySupervisor(
        processes.controller,
        processes.hosts,
        {
            **{
                name: partial(_started, request.end, session, builder.query(name, at))
                for name, at in starting.items()
            },
            **builder.misfits(starting),
            **builder.sinks(offsets),
        },
        wanted=lambda part: processes.placed.of(processes.hosts[part]),
        batch=checkpoints.commits,
        failed=request.end.fail,
        broker=lambda: offsets.standing,
        disk=DiskWatch(filter(None, (checkpoints.folder, checkpoints.shared))),
        log=partial(_log, checkpoints.logs / "queries.log"),
    )
    stack.callback(supervisor.stop)
    checkpoints.keep(layout.app, kafka.identity)
    supervisor.start()
    if topics := kafka.cluster.kept(layout.passing_topics):
        committed = partial(builder.committed, topics)
        stack.enter_context(Trimming(kafka.cluster.client(), committed))
    return supervisor, starting


def _share_ends(
    request: StartRequest, kafka: RunKafka, processes: RunProcesses, builder: QueryBuilder
) -> None:
    """Send end offsets to Java whenever they change, so that it transfers records in bulk.

    Not with `read_committed`: records before the end may not be readable yet, and Java would
    wait for them.
    """
    offsets = kafka.offsets
    if kafka.cluster.for_spark.get("kafka.isolation.level") == "read_committed":
        return
    if not request.settings.runs_on.is_local:  # the session's Java runs no tasks
        offsets.followers.append(processes.controller.tell_ends)
        return
    known = KnownEnds(builder.session, builder.ends, request.layout.handed_over)
    known.tell(offsets.partitions())
    offsets.followers.append(known.tell)


def _begin(request: StartRequest, kafka: RunKafka, builder: QueryBuilder) -> None:
    """Record the first offsets of queries; refuse or skip records that Kafka has deleted."""
    lost = builder.lost(kafka.offsets) if kafka.resumes else []
    if not request.settings.skip_lost:
        refuse_lost(lost)
    elif lost:
        builder.skip(lost)
        request.progress(f"Kafka deleted {told_lost(lost)}; skipping them")
    builder.begin(kafka.offsets, goes_on=kafka.resumes)


def _started(end: RunEnd, session: SparkSession, start: StartQuery) -> StreamingQuery:
    """Start a query. During a drain, batches then last their full time again.

    A batch that failed must read the same records again, so it must not end early.
    """
    if end.draining:
        end_in_time(session)
    return start()


def _log(file: Path, text: str) -> None:
    """Append a line with the time to a log."""
    with suppress(OSError), append_to(file) as log:  # a full disk must not end the run
        log.write(stamp(text, time.time()).encode())

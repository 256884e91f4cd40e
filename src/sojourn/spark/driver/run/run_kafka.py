"""The Kafka of a run: external brokers or one of its own, and its topics."""

import secrets
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from sojourn.errors import BadFile
from sojourn.files.durable_file import write_durably
from sojourn.spark.driver.kafka.broker import Broker
from sojourn.spark.driver.kafka.broker_watch import BrokerWatch
from sojourn.spark.driver.kafka.cluster import Cluster
from sojourn.spark.driver.kafka.id_epoch import root_marks, state_epoch
from sojourn.spark.driver.kafka.offsets import Offsets
from sojourn.spark.driver.kafka.ports import HOST
from sojourn.spark.driver.layout import check_slots
from sojourn.spark.driver.run.run_state import RunState
from sojourn.spark.driver.run.start_request import StartRequest

# Partitions that are added later need more slots, and an unused slot costs nothing.
_SPARE_SLOTS = 8
_SIGNING_KEY, _KEY_BYTES = "signing-key", 32


@dataclass(frozen=True, slots=True, kw_only=True)
class RunKafka:
    cluster: Cluster
    own: BrokerWatch | None
    """Restarts the run's own broker, if it has one."""
    identity: str
    """The id of the cluster."""
    resumes: bool
    """Whether the run resumes from a state."""
    epoch: str
    """The id of the state, in ids of reminders and roots."""
    partitions: Mapping[str, int]
    """The number of partitions, by topic."""
    marks: Mapping[str, str]
    """The marks in ids of roots, by topic."""
    fences: Mapping[str, float]
    """How many seconds late a record may be written, by topic of a deduplicated sink."""
    held: Mapping[str, int]
    """The slots that each query holds."""
    slots: int
    """The slots of a session on one machine."""
    offsets: Offsets
    signing_key: bytes = field(repr=False)
    """The key with which queries sign input offsets in Kafka headers.

    With it, an attacker could make readers of the application drop records.
    """


def open_kafka(request: StartRequest, state: RunState, stack: ExitStack) -> RunKafka:
    """Connect to brokers, or start one that ends with *stack*, and create missing topics.

    Raise `BadInput` if the state is that of another application or cluster, or if the queries
    hold more slots than Spark has.
    """
    layout, settings, checkpoints = request.layout, request.settings, state.checkpoints
    if settings.servers is None:
        own = _own_broker(request, state, stack)
        there = own.broker.cluster
        cluster = Cluster(there.servers, {**settings.kafka, **there.options})
    else:
        own, cluster = None, Cluster(settings.servers, settings.kafka)
    identity = cluster.identity()
    if resumes := checkpoints.check(layout.app, identity):
        checkpoints.check_queries(layout.parts)
    partitions = _topics(request, cluster)
    held = layout.slots(partitions)
    slots = settings.slots or 2 * sum(held.values()) + _SPARE_SLOTS
    if settings.runs_on.is_local:
        check_slots(held, slots)
    # both must be on disk before the start of queries records that there is a state to resume
    epoch = state_epoch(checkpoints.folder, goes_on=resumes)
    key = signing_key(checkpoints.folder, resumes=resumes)
    offsets = Offsets(cluster.client(), partitions)
    offsets.settle()
    return RunKafka(
        cluster=cluster,
        own=own,
        identity=identity,
        resumes=resumes,
        epoch=epoch,
        partitions=partitions,
        marks=root_marks(cluster.client(), layout.topics, epoch) | layout.reminder_marks(epoch),
        fences=_fences(request, cluster),
        held=held,
        slots=slots,
        offsets=offsets,
        signing_key=key,
    )


def _own_broker(request: StartRequest, state: RunState, stack: ExitStack) -> BrokerWatch:
    """Start a broker; with a state folder, its records are kept for the next run."""
    request.progress("starting a Kafka broker")
    settings = request.settings
    data = None if settings.state is None else state.checkpoints.broker
    broker = Broker(
        data=data,
        port=settings.broker_port,
        # executors reach the broker at the same address as the driver
        host=settings.spark.get("spark.driver.host", HOST),
        secured=settings.broker_secured,
        inherits=[state.lock],
    )
    stack.enter_context(broker)
    return stack.enter_context(BrokerWatch(broker, request.end.fail, data))


def _topics(request: StartRequest, cluster: Cluster) -> dict[str, int]:
    """Create missing topics; return the number of partitions by topic."""
    layout, settings = request.layout, request.settings
    required = {topic: f"source {name}" for name, topic in layout.app.required_topics.items()}
    partitions = cluster.ensure(
        layout.topics,
        settings.partitions,
        # our own broker is empty at first, and no other process creates its topics
        required=required if settings.servers else None,
    )
    for sink in layout.deduplicated.values():
        read = partitions[layout.app.topic(sink.stream.name)]
        fenced = not settings.runs_on.is_local
        partitions |= cluster.ensure([layout.app.topic(sink.name)], read, fenced=fenced)
    return partitions


def _fences(request: StartRequest, cluster: Cluster) -> dict[str, float]:
    """Return the maximum delay of records, for topics of deduplicated sinks that have one.

    On one machine there is no need: when Java ends, no writer is left that could be late.
    """
    if request.settings.runs_on.is_local:
        return {}
    layout = request.layout
    topics = [layout.app.topic(sink.name) for sink in layout.deduplicated.values()]
    fences = cluster.fences(topics)
    for topic in topics:
        if topic not in fences:
            request.progress(
                f"warning: {topic} accepts records of any age, so a node that was cut off "
                "from the network may write duplicates when it reconnects; set its "
                "message.timestamp.before.max.ms to 10000 (Kafka 3.6 or newer)"
            )
    return fences


def signing_key(folder: Path, *, resumes: bool) -> bytes:
    """Return the key of the state in *folder*: a new one unless the application *resumes*.

    It is kept with the state and lives as long, because records in topics carry its
    signatures. Raise `BadFile` if a state that is resumed has none.
    """
    path = folder / _SIGNING_KEY
    if not resumes:
        key = secrets.token_bytes(_KEY_BYTES)
        write_durably(path, key.hex().encode())
        return key
    try:
        key = bytes.fromhex(path.read_text(encoding="ascii"))
    except (OSError, ValueError) as error:
        raise _unusable(path, str(error)) from error
    if len(key) != _KEY_BYTES:
        raise _unusable(path, f"it has {len(key)} bytes instead of {_KEY_BYTES}")
    return key


def _unusable(path: Path, problem: str) -> BadFile:
    way_out = "restore it from a backup of the state, or start without this state (--fresh)"
    return BadFile(str(path), f"cannot be used: {problem}", way_out)

"""The Kafka of a run: brokers that others run or its own one, and the topics there."""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field

from sojourn.spark.driver.kafka.append_times import AppendTimes
from sojourn.spark.driver.kafka.broker import Broker
from sojourn.spark.driver.kafka.broker_watch import BrokerWatch
from sojourn.spark.driver.kafka.cluster import Cluster
from sojourn.spark.driver.kafka.id_epoch import root_marks, state_epoch
from sojourn.spark.driver.kafka.ports import HOST
from sojourn.spark.driver.layout import check_slots, spare_slots
from sojourn.spark.driver.query.query_builder import STATE_PARTITIONS
from sojourn.spark.driver.run.run_state import RunState
from sojourn.spark.driver.run.start_request import StartRequest
from sojourn.spark.driver.state.signing_key import signing_key

__all__ = ["RunKafka", "open_kafka"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunKafka:
    """The brokers of a run at *cluster*, which has an *identity*, and its topics there.

    Its *own* broker, if it started one, is restarted when it ends. Whether the application
    *resumes*, and the *epoch* of its state, are in the state folder. By topic there are
    *partitions*, *marks* for ids of roots, and *fences*: how many seconds late a record may be.
    Queries *held* so many slots, of the *slots* of a session on one machine. They sign offsets
    with *signing_key*.
    """

    cluster: Cluster
    own: BrokerWatch | None
    identity: str
    resumes: bool
    epoch: str
    partitions: Mapping[str, int]
    marks: Mapping[str, str]
    fences: Mapping[str, float]
    held: Mapping[str, int]
    slots: int
    offsets: AppendTimes
    signing_key: bytes = field(repr=False)


def open_kafka(request: StartRequest, state: RunState, stack: ExitStack) -> RunKafka:
    """Create the topics that are missing, at brokers that exist or one that *stack* ends.

    Raise `BadInput` if the state is of another application or cluster, or Spark has fewer slots
    than the queries hold.
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
    held = layout.slots(partitions, STATE_PARTITIONS)
    slots = settings.slots or spare_slots(sum(held.values()))
    if settings.runs_on.is_local:
        check_slots(held, slots)
    # both are on disk before the queries note that there is a state to resume
    epoch = state_epoch(checkpoints.folder, goes_on=resumes)
    key = signing_key(checkpoints.folder, resumes=resumes)
    offsets = AppendTimes(cluster.client(), partitions)
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
    """Start a broker; the records of a kept state are there for the next run."""
    request.progress("starting a Kafka broker")
    settings = request.settings
    data = None if settings.state is None else state.checkpoints.broker
    broker = Broker(
        data=data,
        port=settings.broker_port,
        # where executors reach the driver, they reach it as well
        host=settings.spark.get("spark.driver.host", HOST),
        secured=settings.broker_secured,
        inherits=[state.lock],
    )
    stack.enter_context(broker)
    return stack.enter_context(BrokerWatch(broker, request.end.fail, data))


def _topics(request: StartRequest, cluster: Cluster) -> dict[str, int]:
    """Create the topics that are missing; return how many partitions each has."""
    layout, settings = request.layout, request.settings
    partitions = cluster.ensure(
        layout.topics,
        settings.partitions,
        # a broker of our own has nothing yet, and nobody else to make it
        required=layout.required_topics if settings.servers else None,
    )
    for sink in layout.deduplicated:
        read = partitions[layout.app.topic(sink.stream.name)]
        fenced = not settings.runs_on.is_local
        partitions |= cluster.ensure([layout.app.topic(sink.name)], read, fenced=fenced)
    cluster.unbind(layout.inner_topics)
    return partitions


def _fences(request: StartRequest, cluster: Cluster) -> dict[str, float]:
    """Return which topics of deduplicated sinks refuse late records, and by how much.

    On one machine nothing comes back once Java is gone.
    """
    if request.settings.runs_on.is_local:
        return {}
    sinks = [request.layout.app.topic(sink.name) for sink in request.layout.deduplicated]
    fences = cluster.fences(sinks)
    for topic in sinks:
        if topic not in fences:
            request.progress(
                f"warning: {topic} accepts records of any age, so a node that was cut off "
                "from the network may write duplicates when it reconnects; set its "
                "message.timestamp.before.max.ms to 10000 (Kafka 3.6 or newer)"
            )
    return fences

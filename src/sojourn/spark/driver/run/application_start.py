"""The start of an application: state, Kafka, processes and queries, in this order."""

import time
from contextlib import ExitStack

from sojourn.errors import EngineError
from sojourn.spark.driver.batches import Batches
from sojourn.spark.driver.counters import Pulls
from sojourn.spark.driver.load.offered_load import Load
from sojourn.spark.driver.load.producer import LoadProcess
from sojourn.spark.driver.load.samples import load_sources
from sojourn.spark.driver.run.application_run import ApplicationRun
from sojourn.spark.driver.run.processes import RunProcesses, start_processes
from sojourn.spark.driver.run.queries import Queries, start_queries
from sojourn.spark.driver.run.run_kafka import RunKafka, open_kafka
from sojourn.spark.driver.run.run_state import RunState, open_state
from sojourn.spark.driver.run.start_request import StartRequest
from sojourn.spark.wire.counters import PartTally

__all__ = ["start_application"]

_LOOK_S = 0.05


def start_application(request: StartRequest, stack: ExitStack) -> ApplicationRun:
    """Start an application, and return when every operator can take records.

    Everything that was started ends with *stack*.
    """
    state = open_state(request, stack)
    kafka = open_kafka(request, state, stack)
    processes = start_processes(request, state, kafka, stack)
    queries = start_queries(request, state, kafka, processes, stack)
    early = _await_relays(request, state, kafka, processes)
    pulls = _begin_counting(request, kafka, queries, early, stack)
    _send_load(request, kafka, stack)
    return ApplicationRun(
        layout=request.layout,
        state=state.checkpoints,
        kafka=kafka,
        processes=processes,
        queries=queries,
        pulls=pulls,
        batches=Batches(
            layout=request.layout,
            state=state.checkpoints,
            controller=processes.controller,
            pulls=pulls,
            since_s=time.time(),
            batch_s=request.settings.batch_s,
        ),
    )


def _await_relays(
    request: StartRequest, state: RunState, kafka: RunKafka, processes: RunProcesses
) -> dict[str, list[PartTally]]:
    """Wait until every host has a relay for each task of its query; return reports by part."""
    request.progress("waiting for Spark to read from Kafka")
    early: dict[str, list[PartTally]] = {}
    left, until_s = set(processes.hosts), time.monotonic() + request.patience_s
    while left:
        request.end.check()
        if time.monotonic() > until_s:
            raise EngineError(
                f"{', '.join(sorted(left))}: Spark did not read from Kafka within "
                f"{request.patience_s:g} s; see {state.checkpoints.logs / 'spark.log'}"
            )
        processes.controller.ask()
        time.sleep(_LOOK_S)
        for name, tallies in processes.controller.tallies().items():
            early.setdefault(name, []).extend(tallies)
            # each task of the query has a relay, and reads one partition
            if tallies[-1].state.relays >= kafka.held[name]:
                left.discard(name)
    return early


def _begin_counting(
    request: StartRequest,
    kafka: RunKafka,
    queries: Queries,
    early: dict[str, list[PartTally]],
    stack: ExitStack,
) -> Pulls:
    """Return the counters, which begin now; *early* are reports from before."""
    layout, offsets, began_s = request.layout, kafka.offsets, time.monotonic()
    offsets.start()
    stack.callback(offsets.stop)
    ends = offsets.partitions()
    written = {
        name: {topic: ends[topic] for topic in layout.writes(name).values()}
        for name in layout.natives
    }
    pulls = Pulls(layout, offsets, queries.starting, written, began_s)
    pulls.begin(early, ends)
    return pulls


def _send_load(request: StartRequest, kafka: RunKafka, stack: ExitStack) -> None:
    """Start a process that sends the load of the settings, if any, until *stack* ends."""
    if not (rates := request.settings.load):
        return
    load = Load(
        servers=kafka.cluster.servers,
        sources=load_sources(request.layout.app, request.layout.address, rates),
        lasts_s=max(points[-1][0] for points in rates.values()),
        kafka=dict(kafka.cluster.for_clients),
    )
    stack.enter_context(LoadProcess(load))

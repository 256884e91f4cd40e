"""A part of an application inside a Structured Streaming query of the user's own."""

import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Self

from pyspark.sql import DataFrame, SparkSession

from sojourn.app.application import App
from sojourn.app.loading import load
from sojourn.errors import BadInput, EngineError
from sojourn.spark.driver.hosts.controller import Controller
from sojourn.spark.driver.jvm.session import tasks_of
from sojourn.spark.driver.layout import Layout
from sojourn.spark.driver.master import STREAMING
from sojourn.spark.driver.native.frame import SESSION
from sojourn.spark.driver.query.part_query import COLUMNS, PartQuery, through_host
from sojourn.spark.driver.query.real_time import OPTIONS
from sojourn.spark.driver.state.checkpoints import Checkpoints
from sojourn.spark.driver.state.state_lock import StateLock
from sojourn.spark.driver.state.state_transfer import finish_import
from sojourn.spark.wire.record import MOST_BYTES

# Stands for the id of the Kafka cluster, which only the user's query knows.
_CLUSTER = "of the query"
# Steps that keep one row per offset and their order, or drop rows; all others mix them.
_KEEPS_ROWS = re.compile(r"Project|Filter|SubqueryAlias|Streaming\w*")


class Stage:
    """The functions of the application at *address*, with their projections, as a query step.

    A context manager that starts the host of the functions, each with its number of
    *processors*, or 1. Called with a DataFrame of Kafka's source (with headers), it returns one
    for Kafka's sink, with the rows of all topics that the functions write. The query must run
    in real-time mode with batches of *batch_s*.

    The folder *state* keeps open records at the end of each batch, and the states of keys. It
    is for one stage at a time, and belongs to the checkpoint of the query: a query with another
    checkpoint fails before its first record. Entering raises `EngineError` if the folder is in
    use, `BadFile` if it is on a network file system or other users have access to it, and
    `BadInput` if it belongs to an incompatible version of the application.

    Rows must be those of Kafka's source, one for each offset and in order: their value may be
    changed and rows may be dropped, but nothing may explode, join, group or shuffle them.
    """

    CONF: Mapping[str, str] = {**STREAMING, **SESSION}
    """Settings that the session must be created with."""
    OPTIONS: Mapping[str, str] = OPTIONS
    """Options that the writer of the query must have."""

    def __init__(
        self,
        address: str,
        *,
        state: Path | str,
        processors: Mapping[str, int] | None = None,
        batch_s: float = 60.0,
    ) -> None:
        self._layout = _checked(load(address), address)
        (self._part,) = self._layout.parts
        self._state, self._batch_s = Checkpoints(Path(state).absolute()), batch_s
        self._processors = dict.fromkeys(self._layout.functions, 1) | dict(processors or {})
        self._stack: ExitStack | None = None

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sojourn-")))
            self._layout.check_sockets(folder)
            stack.enter_context(StateLock(self._state.folder))
            finish_import(self._state)
            self._state.remove_leftovers(self._layout.parts)
            self._state.check(self._layout.app, _CLUSTER)
            self._controller = stack.enter_context(
                Controller(folder / "hosts", logs=self._state.logs)
            )
            self._folder = folder
            self._controller.start(
                self._layout.host(self._part, folder, self._state, self._processors)
            )
            self._state.keep(self._layout.app, _CLUSTER)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_exception: object) -> None:
        stack, self._stack = self._stack, None
        if stack is not None:
            stack.close()

    def __call__(self, frame: DataFrame) -> DataFrame:
        """Return the results of the functions for the records of *frame*.

        Raise `BadInput` if its rows are not those of Kafka's source, or if the session lacks
        the settings of `CONF`.
        """
        if self._stack is None:
            raise EngineError("the stage has no host; use it in a with statement")
        session = frame.sparkSession
        _check_rows(frame)
        layout, part = self._layout, self._part
        projections = layout.parts[part].projections
        _check_session(session, self.CONF if projections else STREAMING)
        self._controller.tasks = partial(tasks_of, session)
        query = PartQuery(
            route=layout.route(
                part, trace_per_s=0.0, most_bytes=MOST_BYTES, marks={}, partitions={}
            ),
            host=layout.addresses(self._folder)[part],
            before=layout.before(part),
            behind=layout.behind(part),
            batch_s=self._batch_s,
        )
        return through_host(frame, query)

    def scale(self, operator: str, processors: int) -> None:
        """Set the number of an operator's processors; records are processed without a pause."""
        self._controller.scale(operator, processors)

    def running(self, operator: str) -> int:
        """Return the number of an operator's processors that can take records."""
        return self._controller.running(operator)


def _checked(app: App, address: str) -> Layout:
    app.check()
    layout = Layout(app, address)
    if len(layout.parts) != 1 or layout.natives:
        raise BadInput(
            f"{address} is not one part: it has {len(layout.parts)} parts and "
            f"{len(layout.natives)} operators of Spark's own beside them; make its streams not "
            "durable, or run it with sojourn run"
        )
    for sink in layout.deduplicated.values():
        raise BadInput(
            f"{address} has a deduplicated sink, {sink.name}, which needs a query of its own; "
            "leave out deduplicate=, or run it with sojourn run"
        )
    return layout


def _check_rows(frame: DataFrame) -> None:
    missing = [name for name in (*COLUMNS, "timestamp") if name not in frame.columns]
    if missing:
        raise BadInput(
            f"the DataFrame has no column {missing[0]}; pass on all columns of Kafka's source, "
            'read with option("includeHeaders", "true")'
        )
    for name in _steps(frame._jdf.queryExecution().analyzed()):  # noqa: SLF001
        if not _KEEPS_ROWS.fullmatch(name):
            raise BadInput(
                f"the DataFrame has a step {name}, after which rows no longer match Kafka's "
                "offsets one to one and in order; move it after the stage"
            )


def _steps(plan: Any) -> Iterator[str]:  # noqa: ANN401 - of Java
    """Yield the names of all nodes of Spark's *plan*."""
    yield str(plan.nodeName())
    children = plan.children()
    for number in range(children.size()):
        yield from _steps(children.apply(number))


def _check_session(session: SparkSession, needed: Mapping[str, str]) -> None:
    for name, value in needed.items():
        if session.conf.get(name, None) != value:
            raise BadInput(
                f"the session has {name}={session.conf.get(name, None)}, but a stage needs "
                f"{value}; create the session with Stage.CONF"
            )
    master = session.sparkContext.master or ""
    # unset, Spark's default is 1 for a local master, and 4 for others
    failures = session.conf.get("spark.task.maxFailures", "1" if "local" in master else "4")
    if failures != "1":
        raise BadInput(
            f"a task may fail {failures} times, and then runs again without its batch; set "
            "spark.task.maxFailures to 1"
        )

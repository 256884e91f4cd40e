"""An application as its author writes it: sources, operators, sinks."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias, TypeVar, Unpack

from sojourn.app.function import check_function, check_set_up
from sojourn.app.graph import check_graph
from sojourn.app.names import check_name
from sojourn.app.native import aggregation, projection
from sojourn.app.operator import (
    AppOperator,
    Function,
    Hints,
    NativeOperator,
    PythonOperator,
)
from sojourn.app.schema import Schema
from sojourn.app.settings import PythonSettings, Settings, settings_of
from sojourn.app.stream import Sink, Stream
from sojourn.app.streams import Streams
from sojourn.errors import BadApplication
from sojourn.topology.check import shown

if TYPE_CHECKING:
    from sojourn.topology import Topology

__all__ = ["App", "Columns", "Readable"]

Columns: TypeAlias = str | Schema
"""Columns in Spark's DDL, or parsed."""

Readable: TypeAlias = Stream | AppOperator
"""A stream, or the operator that writes only one."""

Added = TypeVar("Added", bound=AppOperator)


class App:
    """Streams and operators, added one by one, each checked as it comes.

    >>> app = App("wordcount")
    >>> lines = app.source("lines", schema="line string")
    >>> @app.operator(reads=lines, emits="word string", service_s=0.001, sends=8.5)
    ... def split(line: str):
    ...     for word in line.split():
    ...         yield (word,)
    >>> counts = app.aggregate(
    ...     "count", reads=split, by="word", columns={"n": "count(*)"}, service_s=0.0001
    ... )
    >>> app.sink(counts)
    >>> app.topology({"lines": 100}).rates
    {'split': 100.0, 'count': 850.0}
    """

    def __init__(self, name: str) -> None:
        check_name("name", name)
        self.name = name
        self._streams = Streams(name)
        self._operators: dict[str, AppOperator] = {}
        self._sinks: dict[str, Sink] = {}
        self._topics: dict[str, str] = {}
        self._required: dict[str, str] = {}

    @property
    def streams(self) -> Mapping[str, Stream]:
        """All streams by name."""
        return MappingProxyType(self._streams.named)

    @property
    def sources(self) -> Mapping[str, Stream]:
        """The streams that enter from outside."""
        return MappingProxyType(self._streams.sources)

    @property
    def operators(self) -> Mapping[str, AppOperator]:
        """All operators by name."""
        return MappingProxyType(self._operators)

    @property
    def sinks(self) -> Mapping[str, Sink]:
        """The streams that leave, by the name of the sink."""
        return MappingProxyType(self._sinks)

    @property
    def required_topics(self) -> Mapping[str, str]:
        """The topics that must be there before the application starts, by their source."""
        return MappingProxyType(self._required)

    def topic(self, stream: str) -> str:
        """Return the Kafka topic of a stream, or of a sink."""
        return self._topics.get(stream, f"{self.name}.{stream}")

    def source(
        self, name: str, *, schema: Columns, topic: str | None = None, create: bool = False
    ) -> Stream:
        """Add a stream that enters from outside, and return it.

        Its records are those of the Kafka *topic*, which must be there unless *create* says
        to make it. Without *topic* that is `application.stream`, which is made.
        """
        stream = self._streams.new("sources", name, schema)
        if topic is not None:
            check_name(f"sources.{name}.topic", topic)
            self._topics[name] = topic
            if not create:
                self._required[name] = topic
        self._streams.named[name] = self._streams.sources[name] = stream
        return stream

    def stream(self, name: str, *, schema: Columns) -> Stream:
        """Add a stream that operators write further down, and return it: for loops."""
        self._streams.named[name] = stream = self._streams.new("streams", name, schema)
        return stream

    def sink(
        self,
        reads: Readable,
        *,
        name: str | None = None,
        deduplicate: bool = False,
        window: int = 100_000,
    ) -> None:
        """Let a stream leave the application.

        After a failure records may come twice. With *deduplicate* those of the last *window*
        leave once, in the topic `application.name`, which then needs a *name* of its own.
        """
        stream = self._streams.known("sinks", reads).plain
        name = stream.name if name is None else name
        place = check_name("sinks", name)
        if name in self._sinks:
            raise BadApplication(place, "there is a sink of that name", "give it name=")
        if deduplicate and name in self._streams.named:
            problem = f"{name} is the stream with what came twice"
            raise BadApplication(place, problem, 'give what leaves once another name, name=""')
        if window < 1:
            problem = f"{shown(window)} records cannot be remembered"
            raise BadApplication(f"{place}.window", problem, "write 1 or more")
        self._sinks[name] = Sink(
            name=name, stream=stream, deduplicate=deduplicate, window=window
        )

    def operator(
        self,
        *,
        reads: Readable | Sequence[Readable],
        emits: Columns | Stream | Mapping[str, Columns | Stream] | None = None,
        name: str | None = None,
        set_up: Function | None = None,
        **settings: Unpack[PythonSettings],
    ) -> Callable[[Function], PythonOperator]:
        """Add the function below as an operator.

        With one stream to read, the function gets the columns of a record, and with a list of
        streams the stream's name and the record. With columns to emit, it yields records of a
        stream with the operator's name, and with streams by name pairs of name and record.
        What *set_up* returns, once for each processor, is its first argument.
        """

        def add(function: Function) -> PythonOperator:
            called = getattr(function, "__name__", None) if name is None else name
            called, place = self._new_operator(called)
            several = isinstance(reads, list | tuple)
            read = self._streams.read(f"{place}.reads", reads)
            arguments = ("stream", "record") if several else read[0].columns
            if set_up is not None:
                check_set_up(f"{place}.set_up", set_up)
                arguments = ("set_up", *arguments)
            check_function(place, function, arguments, emits=emits is not None)
            written = self._streams.written(f"{place}.emits", called, emits)
            return self._add(
                PythonOperator(
                    name=called,
                    reads=read,
                    emits=written,
                    function=function,
                    set_up=set_up,
                    names_input=several,
                    names_output=isinstance(emits, Mapping),
                    **settings_of(place, settings, written, native=False),
                )
            )

        return add

    def project(
        self,
        name: str,
        *,
        reads: Readable,
        columns: Mapping[str, str],
        emits: Columns | None = None,
        **settings: Unpack[Settings],
    ) -> NativeOperator:
        """Add Spark SQL expressions that make one record of each, and return the operator.

        *emits* gives the types of the columns, which an operator in Python needs to read them.
        """
        read = self._native(name, reads)
        return self._add(projection(name, read, columns, emits, settings))

    def aggregate(
        self,
        name: str,
        *,
        reads: Readable,
        by: str | Iterable[str],
        columns: Mapping[str, str],
        emits: Columns | None = None,
        **settings: Unpack[Settings],
    ) -> NativeOperator:
        """Add Spark's own stateful aggregation by some columns, and return the operator.

        *emits* gives the types, those of *by* first.
        """
        read = self._native(name, reads)
        return self._add(aggregation(name, read, by, columns, emits, settings))

    def check(self) -> None:
        """Raise a `BadApplication` unless streams and operators hang together."""
        check_graph(self._streams, self._operators)

    def topology(
        self, rates: Mapping[str, float], *, measured: Mapping[str, Hints] | None = None
    ) -> "Topology":
        """Return what planner and simulator need, at *rates* records per second by source.

        What was *measured* of an operator comes before its hints. Raise a `BadApplication`
        where neither says how long it takes for a record.
        """
        # numpy comes with it, which a host does not need
        from sojourn.app.as_topology import as_topology  # noqa: PLC0415

        self.check()
        return as_topology(self, rates, measured or {})

    def _new_operator(self, name: object) -> tuple[str, str]:
        place = check_name("operators", name)
        if name in self._operators:
            raise BadApplication(place, "there is one of that name", "give it another name=")
        return str(name), place

    def _native(self, name: str, reads: Readable) -> Stream:
        _, place = self._new_operator(name)
        self._streams.check_free(place, name)
        return self._streams.known(f"{place}.reads", reads)

    def _add(self, operator: Added) -> Added:
        """Keep *operator* and the streams it writes; of one that is refused nothing is kept."""
        self._streams.named.update({stream.name: stream for stream in operator.emits})
        self._operators[operator.name] = operator
        return operator

"""An application: sources, operators and sinks."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar, Unpack

from sojourn.app.checks import (
    check_flag,
    check_function,
    check_name,
    check_samples,
    check_set_up,
    check_window,
)
from sojourn.app.codec import codec_of
from sojourn.app.native import native_operator
from sojourn.app.operator import AppOperator, Function, Hints, NativeOperator, PythonOperator
from sojourn.app.schema import Schema
from sojourn.app.settings import PythonSettings, Settings, settings_of
from sojourn.app.state import check_keys
from sojourn.app.stream import Avro, Sink, Stream
from sojourn.app.streams import Streams, check_graph
from sojourn.errors import BadApplication
from sojourn.text import shown

if TYPE_CHECKING:
    from sojourn.topology import Topology

Columns: TypeAlias = str | Schema
"""Columns as text in Spark's DDL, or a parsed schema."""

Readable: TypeAlias = Stream | AppOperator
"""A stream, or an operator that writes exactly one."""

Samples: TypeAlias = Callable[[int], Iterable[tuple[object, ...]]]
"""Generates sample records of a source from a seed; the same seed gives the same records."""

_Added = TypeVar("_Added", bound=AppOperator)


class App:
    """An application: streams and operators, each validated when it is added.

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

    def __init__(
        self,
        name: str,
        *,
        streams: Literal["in_memory", "durable"] = "in_memory",
        id_window: int = 100_000,
    ) -> None:
        """Create an application called *name*.

        Records pass from function to function in memory, unless *streams* are "durable": then
        all streams go through Kafka, where other programs can read them, and operators recover
        independently. Operators with state drop duplicates whose producer-assigned id is among
        the last *id_window* of their partition.
        """
        check_name("name", name)
        if streams not in ("in_memory", "durable"):
            problem = f"{shown(streams)} is not known"
            raise BadApplication("streams", problem, 'write "in_memory" or "durable"')
        self.name, self.durable_streams = name, streams == "durable"
        self.id_window = check_window("id_window", id_window)
        self._streams = Streams(name)
        self._operators: dict[str, AppOperator] = {}
        self._sinks: dict[str, Sink] = {}
        self._topics: dict[str, str] = {}
        self._required: dict[str, str] = {}
        self._samples: dict[str, Samples] = {}

        self.streams: Mapping[str, Stream] = MappingProxyType(self._streams.named)
        """All streams by name."""
        self.sources: Mapping[str, Stream] = MappingProxyType(self._streams.sources)
        """The streams that enter from outside."""
        self.operators: Mapping[str, AppOperator] = MappingProxyType(self._operators)
        """All operators by name."""
        self.sinks: Mapping[str, Sink] = MappingProxyType(self._sinks)
        """The sinks by name."""
        self.samples: Mapping[str, Samples] = MappingProxyType(self._samples)
        """The generators of sample records, by source."""
        self.required_topics: Mapping[str, str] = MappingProxyType(self._required)
        """The topics that must exist before the application starts, by source."""

    def topic(self, stream: str) -> str:
        """Return the Kafka topic of a stream or a sink.

        A sink without deduplication uses the topic of its stream.
        """
        sink = self._sinks.get(stream)
        if sink is not None and not sink.deduplicate:
            stream = sink.stream.name
        return self._topics.get(stream, f"{self.name}.{stream}")

    def source(
        self,
        name: str,
        *,
        schema: Columns,
        topic: str | None = None,
        create: bool = False,
        samples: Samples | None = None,
        format: Avro | None = None,  # noqa: A002 - the word for it
    ) -> Stream:
        """Add a stream from outside, and return it.

        Its records come from the Kafka *topic*, which must exist unless *create* is True. The
        default topic is `application.stream`, which is created. *samples* generates records
        from a seed for trials: `sojourn feed` sends them. Without a *format* records are JSON.
        """
        stream = self._streams.new("sources", name, schema, format)
        if topic is not None:
            check_name(f"sources.{name}.topic", topic)
            self._topics[name] = topic
            if not create:
                self._required[name] = topic
        if samples is not None:
            check_samples(f"sources.{name}.samples", samples)
            self._samples[name] = samples
        self._streams.named[name] = self._streams.sources[name] = stream
        return stream

    def stream(
        self,
        name: str,
        *,
        schema: Columns,
        format: Avro | None = None,  # noqa: A002 - the word for it
        durable: bool = False,
    ) -> Stream:
        """Declare a stream before the operators that write it, and return it; loops need this.

        A *durable* stream goes through Kafka: its records are kept there, other programs can
        read them, and the operators before and after it recover independently.
        """
        stream = self._streams.new("streams", name, schema, format, durable=durable)
        self._streams.named[name] = stream
        return stream

    def sink(
        self,
        reads: Readable,
        *,
        name: str | None = None,
        deduplicate: bool = False,
        window: int = 100_000,
    ) -> None:
        """Make a stream an output of the application.

        Delivery is at least once: after a failure a record may be written again. With
        *deduplicate* the topic `application.name` gets each record once; *name* must then
        differ from all streams. Of ids assigned by producers, the last *window* are compared.
        """
        stream = self._streams.known("sinks", reads).plain
        name = stream.name if name is None else name
        place = check_name("sinks", name)
        if name in self._sinks:
            problem = "a sink with this name already exists"
            raise BadApplication(place, problem, "give it another name with name=")
        if deduplicate and name in self._streams.named:
            problem = f"the topic of stream {name} keeps the duplicates"
            way_out = "give the deduplicated sink another name with name="
            raise BadApplication(place, problem, way_out)
        check_window(f"{place}.window", window)
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
        format: Avro | None = None,  # noqa: A002 - the word for it
        durable: bool = False,
        **settings: Unpack[PythonSettings],
    ) -> Callable[[Function], PythonOperator]:
        """Return a decorator that adds a function as an operator.

        If *reads* is one stream, the function is called with the columns of a record; if it is
        a list, with the name of the stream and the record. If *emits* is columns, the function
        yields records of a stream with the operator's name; if it maps names to streams, it
        yields pairs of name and record. *format* and *durable* apply to the stream whose
        columns *emits* gives: its encoding, and whether it goes through Kafka.

        *set_up* is called once per processor, and its result is passed as the first argument.
        With `record_id=True` the id of the record is passed before its columns: unique, and the
        same if the record is processed again after a failure.

        An operator that reads by key may keep a `state` for each key, declared by defaults or
        in DDL: a mutable dictionary, passed before the record. Changes to the state and yielded
        records are committed together, or discarded together if the function raises.
        `state.remind` calls it again for the key; `ttl_s` removes states that do not change.
        With `nulls=True` it receives messages whose value is null, as in compacted topics: only
        the columns of the key have values.
        """

        def add(function: Function) -> PythonOperator:
            called = getattr(function, "__name__", None) if name is None else name
            called, place = self._new_operator(called)
            several = isinstance(reads, list | tuple)
            read = self._streams.read(f"{place}.reads", reads)
            columns = () if several else read[0].columns
            arguments = columns or ("stream", "record")
            if settings.get("record_id") is True:
                arguments = ("record_id", *arguments)
            if settings.get("state") is not None:
                check_keys(place, read)
                arguments = ("state", *arguments)
            if set_up is not None:
                check_set_up(f"{place}.set_up", set_up)
                arguments = ("set_up", *arguments)
            check_function(place, function, arguments, columns=columns, emits=emits is not None)
            written = self._streams.written(
                f"{place}.emits", called, emits, format, durable=durable
            )
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
        durable: bool = False,
        **settings: Unpack[Settings],
    ) -> NativeOperator:
        """Add a projection in Spark SQL, one record out per record in, and return the operator.

        *emits* gives the types of the columns; it is required if a Python operator reads them.
        A projection next to functions runs in their query. With *durable* it runs in a query of
        its own, and its records go through Kafka.
        """
        read = self._native(name, reads)
        made = native_operator(name, read, columns, emits, settings)
        check_flag(f"operators.{name}.durable", durable)
        return self._add(replace(made, emits=(replace(made.stream, durable=durable),)))

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
        """Add a stateful aggregation in Spark, grouped *by* columns, and return the operator.

        *emits* gives the types of the columns, beginning with the columns of *by*.
        """
        read = self._native(name, reads)
        return self._add(native_operator(name, read, columns, emits, settings, by))

    def check(self) -> None:
        """Raise `BadApplication` if the application cannot be started.

        Includes `check_graph`, and checks that the columns of each stream fit its format, for
        which it may query a schema registry.
        """
        self.check_graph()
        for name, stream in self._streams.named.items():
            lacking = () if stream.schema is None else codec_of(stream).lacking
            if lacking and name not in self._streams.sources:
                problem = f"its Avro schema requires {', '.join(lacking)}, which no column is"
                way_out = "add the columns, or give these fields of the schema a default"
                raise BadApplication(f"streams.{name}", problem, way_out)

    def check_graph(self) -> None:
        """Raise `BadApplication` if a stream is unused, or no source leads to an operator."""
        check_graph(self._streams, self._operators)

    def topology(
        self, rates: Mapping[str, float], *, measured: Mapping[str, Hints] | None = None
    ) -> "Topology":
        """Return the topology for planner and simulator, at *rates* in records/s by source.

        Values *measured* at an operator override its hints. Raise `BadApplication` if neither
        has its service time.
        """
        # imported here because it imports numpy, which a host does not need
        from sojourn.app.as_topology import as_topology  # noqa: PLC0415

        self.check_graph()
        return as_topology(self, rates, measured or {})

    def _new_operator(self, name: object) -> tuple[str, str]:
        place = check_name("operators", name)
        if name in self._operators:
            problem = "an operator with this name already exists"
            raise BadApplication(place, problem, "give it another name")
        return str(name), place

    def _native(self, name: str, reads: Readable) -> Stream:
        _, place = self._new_operator(name)
        self._streams.check_free(place, name)
        stream = self._streams.known(f"{place}.reads", reads)
        if stream.format is not None:
            problem = f"stream {stream.name} is in Avro, and Spark SQL operators read JSON"
            way_out = "read it with a function, @app.operator, that emits the columns as JSON"
            raise BadApplication(f"{place}.reads", problem, way_out)
        return stream

    def _add(self, operator: _Added) -> _Added:
        """Register *operator* and the streams it writes, after all checks have passed."""
        self._streams.named.update({stream.name: stream for stream in operator.emits})
        self._operators[operator.name] = operator
        return operator

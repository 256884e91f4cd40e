"""The streams of one application by name, and the graph of operators that they connect."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sojourn.app.checks import check_flag, check_name
from sojourn.app.operator import AppOperator
from sojourn.app.schema import Schema, parse_schema
from sojourn.app.stream import Avro, Stream
from sojourn.errors import BadApplication
from sojourn.text import shown

# Values of emits= whose streams have formats of their own.
_OWN_FORMAT = (Stream, AppOperator, Mapping)


@dataclass(slots=True)
class Streams:
    owner: str
    """The name of the application."""
    named: dict[str, Stream] = field(default_factory=dict)
    """All streams by name."""
    sources: dict[str, Stream] = field(default_factory=dict)
    """The streams that enter from outside, by name."""

    def new(
        self,
        place: str,
        name: str,
        schema: object,
        form: object = None,
        *,
        durable: object = False,
    ) -> Stream:
        """Create a stream without adding it."""
        self.check_free(place, name)
        durable = check_flag(f"{place}.{name}.durable", durable)
        if form is not None and not isinstance(form, Avro):
            problem = f"{shown(form)} is not a format"
            way_out = "write sj.Avro(…), or leave it out for JSON"
            raise BadApplication(f"{place}.{name}.format", problem, way_out)
        if not isinstance(schema, Schema):
            schema = parse_schema(schema, place=f"{place}.{name}")
        return Stream(
            name=name, columns=schema.names, schema=schema, format=form, durable=durable
        )

    def check_free(self, place: str, name: str) -> None:
        """Raise `BadApplication` unless *name* is valid and unused."""
        check_name(place, name)
        if name in self.named:
            problem = f"a stream {name} already exists"
            raise BadApplication(place, problem, "choose another name, or pass the stream")

    def known(self, place: str, given: object) -> Stream:
        """Return *given*, or the stream that it writes; it must belong to the application."""
        stream = given.stream if isinstance(given, AppOperator) else given
        if not isinstance(stream, Stream):
            way_out = "pass what app.source, app.stream or an operator returned"
            raise BadApplication(place, f"{shown(given)} is not a stream", way_out)
        if self.named.get(stream.name) != stream.plain:
            problem = f"the stream {stream.name} does not belong to {self.owner}"
            raise BadApplication(place, problem, "use streams of the same application")
        return stream

    def read(self, place: str, reads: object) -> tuple[Stream, ...]:
        """Return the streams in `reads=`, one or a list, after checking them."""
        given = reads if isinstance(reads, list | tuple) else [reads]
        streams = tuple(self._typed(place, one) for one in given)
        if not streams or len({stream.name for stream in streams}) < len(streams):
            problem = "it reads one stream twice" if streams else "it reads nothing"
            raise BadApplication(place, problem, "name each stream once, and at least one")
        return streams

    def written(
        self,
        place: str,
        operator: str,
        emits: object,
        form: object = None,
        *,
        durable: object = False,
    ) -> tuple[Stream, ...]:
        """Return the streams in `emits=`, new or existing, after checking them."""
        for setting, is_given in (
            ("durable", durable is not False),
            ("format", form is not None),
        ):
            if is_given and (emits is None or isinstance(emits, _OWN_FORMAT)):
                problem = f"{setting}= is for the one stream that emits= gives the columns of"
                way_out = "give it to app.stream instead, and name that stream in emits="
                raise BadApplication(place, problem, way_out)
        if emits is None:
            return ()
        if isinstance(emits, Stream | AppOperator):
            return (self._writable(place, self._typed(place, emits)),)
        if not isinstance(emits, Mapping):
            return (self.new(place, operator, emits, form, durable=durable),)
        if not emits:
            raise BadApplication(place, "it has no streams", "add one, or leave it out")
        return tuple(self._named(place, name, given) for name, given in emits.items())

    def _named(self, place: str, name: str, given: object) -> Stream:
        if not isinstance(given, Stream | AppOperator):
            return self.new(place, name, given)
        stream = self._writable(place, self._typed(place, given))
        if stream.name != name:
            problem = f"the stream {stream.name} is given under the name {shown(name)}"
            raise BadApplication(place, problem, "use its own name")
        return stream

    def _typed(self, place: str, given: object) -> Stream:
        stream = self.known(place, given)
        if stream.schema is None:
            problem = f"the column types of stream {stream.name} are not known"
            way_out = f"give {stream.name} emits= with a type for each column"
            raise BadApplication(place, problem, way_out)
        return stream

    def _writable(self, place: str, stream: Stream) -> Stream:
        if stream.name in self.sources:
            problem = f"{stream.name} is a source, and cannot be written to"
            way_out = "add another with app.stream, and read both"
            raise BadApplication(place, problem, way_out)
        return stream.plain


def check_graph(streams: Streams, operators: Mapping[str, AppOperator]) -> None:
    sources = streams.sources
    if not sources:
        way_out = 'add one: app.source("lines", schema="line string")'
        raise BadApplication("sources", "there is no source", way_out)
    for source in sources:
        if not readers(source, operators):
            way_out = "let an operator read it, or remove it"
            raise BadApplication(f"sources.{source}", "no operator reads it", way_out)
    written = {stream.name for operator in operators.values() for stream in operator.emits}
    for name in streams.named:
        if name not in written and name not in sources:
            way_out = "name it in the emits= of an operator, or remove it"
            raise BadApplication(f"streams.{name}", "no operator writes it", way_out)
    reached = _reached(sources, operators)
    for name in operators:
        if name not in reached:
            way_out = "let it read a stream that is fed by a source"
            raise BadApplication(f"operators.{name}", "no record ever reaches it", way_out)


def readers(stream: str, operators: Mapping[str, AppOperator]) -> list[str]:
    return [
        name
        for name, operator in operators.items()
        if any(read.name == stream for read in operator.reads)
    ]


def writers(stream: str, operators: Mapping[str, AppOperator]) -> list[str]:
    return [
        name
        for name, operator in operators.items()
        if any(written.name == stream for written in operator.emits)
    ]


def _reached(sources: Iterable[str], operators: Mapping[str, AppOperator]) -> set[str]:
    reached: set[str] = set()
    waiting = list(sources)
    while waiting:
        for reader in readers(waiting.pop(), operators):
            if reader not in reached:
                reached.add(reader)
                waiting += [stream.name for stream in operators[reader].emits]
    return reached

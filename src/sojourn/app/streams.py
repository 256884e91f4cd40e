"""The streams of one application: which there are, and which operators mean."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sojourn.app.names import check_name
from sojourn.app.operator import AppOperator
from sojourn.app.schema import Schema, parse_schema
from sojourn.app.stream import Stream
from sojourn.errors import BadApplication
from sojourn.topology.check import shown

__all__ = ["Streams"]


@dataclass(slots=True)
class Streams:
    """The streams of the application *owner* by name; *sources* come from outside."""

    owner: str
    named: dict[str, Stream] = field(default_factory=dict)
    sources: dict[str, Stream] = field(default_factory=dict)

    def new(self, place: str, name: str, schema: object) -> Stream:
        """Return a stream that is not there yet. It is not kept."""
        self.check_free(place, name)
        if not isinstance(schema, Schema):
            schema = parse_schema(schema, place=f"{place}.{name}")
        return Stream(name=name, columns=schema.names, schema=schema)

    def check_free(self, place: str, name: str) -> None:
        """Raise a `BadApplication` unless *name* can be that of a new stream."""
        check_name(place, name)
        if name in self.named:
            problem = f"there is a stream {name} already"
            raise BadApplication(place, problem, "choose another name, or give the stream")

    def known(self, place: str, given: object) -> Stream:
        """Return the stream that is meant, having checked that it is one of ours."""
        stream = given.stream if isinstance(given, AppOperator) else given
        if not isinstance(stream, Stream):
            way_out = "give what app.source, app.stream or an operator returned"
            raise BadApplication(place, f"{shown(given)} is no stream", way_out)
        if self.named.get(stream.name) != stream.plain:
            problem = f"the stream {stream.name} is not one of {self.owner}"
            raise BadApplication(place, problem, "use those of the same application")
        return stream

    def read(self, place: str, reads: object) -> tuple[Stream, ...]:
        """Return the streams that a function reads: one, or those of a list."""
        given = reads if isinstance(reads, list | tuple) else [reads]
        streams = tuple(self._typed(place, one) for one in given)
        if not streams or len({stream.name for stream in streams}) < len(streams):
            problem = "it reads one stream twice" if streams else "it reads nothing"
            raise BadApplication(place, problem, "name each stream once, and at least one")
        return streams

    def written(self, place: str, operator: str, emits: object) -> tuple[Stream, ...]:
        """Return the streams that a function writes: new ones, and those there are."""
        if emits is None:
            return ()
        if isinstance(emits, Stream | AppOperator):
            return (self._writable(place, self._typed(place, emits)),)
        if not isinstance(emits, Mapping):
            return (self.new(place, operator, emits),)
        if not emits:
            raise BadApplication(place, "there are no streams in it", "leave it out")
        return tuple(self._named(place, name, given) for name, given in emits.items())

    def _named(self, place: str, name: str, given: object) -> Stream:
        if not isinstance(given, Stream | AppOperator):
            return self.new(place, name, given)
        stream = self._writable(place, self._typed(place, given))
        if stream.name != name:
            problem = f"the stream {stream.name} is given as {shown(name)}"
            raise BadApplication(place, problem, "use its own name")
        return stream

    def _typed(self, place: str, given: object) -> Stream:
        stream = self.known(place, given)
        if stream.schema is None:
            problem = f"the types of the stream {stream.name} are known to Spark alone"
            way_out = f"give {stream.name} emits= with a type for each column"
            raise BadApplication(place, problem, way_out)
        return stream

    def _writable(self, place: str, stream: Stream) -> Stream:
        if stream.name in self.sources:
            problem = f"{stream.name} comes from outside, and cannot be written to"
            way_out = "add another with app.stream, and read both"
            raise BadApplication(place, problem, way_out)
        return stream.plain

"""Codecs: one module for each format of messages in Kafka, with the Protocol of `base`."""

from functools import lru_cache

from sojourn.app.codec.base import Codec
from sojourn.app.codec.json import JsonCodec
from sojourn.app.schema import Schema
from sojourn.app.stream import Avro, Stream
from sojourn.registry import optional


def codec_of(stream: Stream) -> Codec:
    """Return the codec of a stream, which must have a schema.

    Raise `BadApplication` if its format does not fit its columns.
    """
    assert stream.schema is not None, stream.name  # noqa: S101 - callers have checked it
    return _codec(stream.schema, stream.name, stream.format)


@lru_cache(maxsize=1024)
def _codec(schema: Schema, name: str, form: Avro | None) -> Codec:
    if form is None:
        return JsonCodec(schema, name)
    with optional(f"the Avro stream {name} needs", "avro"):
        from sojourn.app.codec.avro import AvroCodec  # noqa: PLC0415
    return AvroCodec(schema, name, form)

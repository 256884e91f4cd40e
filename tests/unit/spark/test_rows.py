"""Rows on their way between Spark and Python."""

import io

import pyarrow as pa

from sojourn.spark.jvm.session import STREAMING
from sojourn.spark.query.rows import EMPTY, SCHEMA


def test_an_empty_batch_pushes_what_is_before_it_out_of_every_buffer():
    sink = io.BytesIO()
    with pa.RecordBatchStreamWriter(sink, SCHEMA) as writer:
        writer.write_batch(EMPTY)
        before = sink.tell()
        writer.write_batch(EMPTY)
        size = sink.tell() - before
    buffers = [int(value) for name, value in STREAMING.items() if name.endswith("buffer.size")]
    assert len(buffers) == 2
    assert size > max(buffers)

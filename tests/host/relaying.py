"""Records to a relay as Spark brings them, and what it makes of them, without Spark."""

from datetime import UTC, datetime

import pyarrow as pa

from sojourn.app.schema import parse_schema
from sojourn.app.stream import Stream
from sojourn.spark.relay import relay
from sojourn.spark.rows import Route

ROW = pa.struct(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp_us", pa.int64()),
    ]
)
BORN = datetime(2026, 1, 1, tzinfo=UTC)
BORN_US = int(BORN.timestamp() * 1e6)


def batch_of(offset, value, *, headers=None, key=None, timestamp_us=BORN_US):
    """Return a record as Spark brings it, with its marker."""
    row = {
        "key": key,
        "value": value,
        "headers": headers,
        "topic": "lines",
        "partition": 3,
        "offset": offset,
        "timestamp_us": timestamp_us,
    }
    return pa.RecordBatch.from_arrays([pa.array([row, None], ROW)], ["record"])


def batches(*values, **fields):
    """Yield records as Spark brings them, one at a time."""
    for offset, value in enumerate(values):
        yield batch_of(offset, value, **fields)


LINES = Stream(name="lines", columns=("line",), schema=parse_schema("line string"))
ROUTE = Route(
    operator="split",
    reads={"lines": "lines"},
    writes=dict.fromkeys(
        ["split", "who", "slowly", "timed", "first_raises", "learn"], "words-topic"
    ),
    dead_letters="dead-topic",
)


def results(path, *given, route=ROUTE, **fields):
    run = relay(str(path), route)
    return [row for batch in run(batches(*given, **fields)) for row in batch.to_pylist()]


def headers_of(row):
    return {header["key"]: header["value"] for header in row["headers"]}

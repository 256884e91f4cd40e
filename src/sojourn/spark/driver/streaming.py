"""Settings of Spark with which Python operators stream record by record.

Each was found by measurement. If any one is missing, records wait for later records, or for
the end of the batch.
"""

from collections.abc import Mapping

__all__ = ["STREAMING", "TRANSFER_BYTES"]

TRANSFER_BYTES = 8192
"""The size of the chunks in which Spark sends records to Python, approximately."""

STREAMING: Mapping[str, str] = {
    # Python operators are not on the allowlist of real-time mode; the list only guards
    "spark.sql.streaming.realTimeMode.allowlistCheck": "false",
    # otherwise Java reads from Python only after it has written the whole batch to it
    "spark.python.udf.pipelined.enabled": "true",
    # over TCP, delayed acknowledgements cost 40 ms for each hop
    "spark.python.unix.domain.socket.enabled": "true",
    # the chunks that are sent to Python; see `sojourn.spark.driver.query.transfer`
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(TRANSFER_BYTES),
    # Java writes to Python when its buffer is full. The padding of a record, its last column,
    # is larger than the buffer and so flushes it. Python flushes its own after each batch.
    "spark.buffer.size": str(TRANSFER_BYTES // 2),
    "spark.sql.execution.pandas.udf.buffer.size": str(TRANSFER_BYTES // 2),
}
"""The settings that a session must be created with."""

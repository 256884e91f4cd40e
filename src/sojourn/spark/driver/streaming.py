"""Settings of Spark with which Python operators stream record by record.

Each was found by measuring; without any one of them records wait for others, or for the end of
a batch.
"""

from collections.abc import Mapping

__all__ = ["STREAMING", "TRANSFER_BYTES"]

TRANSFER_BYTES = 8192
"""What goes to Python together: so many bytes, or a little more."""

STREAMING: Mapping[str, str] = {
    # Python operators are not on Real-Time Mode's list; the list is a guard, no mechanism
    "spark.sql.streaming.realTimeMode.allowlistCheck": "false",
    # without it what Python yields is read only after all of a batch has been written to it
    "spark.python.udf.pipelined.enabled": "true",
    # over TCP, delayed acknowledgements cost 40 ms for each hop
    "spark.python.unix.domain.socket.enabled": "true",
    # what goes to Python together; see `sojourn.spark.driver.query.transfer`
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(TRANSFER_BYTES),
    # Java writes to Python when a buffer is full. The padding of a record, which comes last, is
    # larger than that: it passes, and takes along what the buffer holds. Python empties its
    # own after each batch.
    "spark.buffer.size": str(TRANSFER_BYTES // 2),
    "spark.sql.execution.pandas.udf.buffer.size": str(TRANSFER_BYTES // 2),
}
"""What a session is made with."""

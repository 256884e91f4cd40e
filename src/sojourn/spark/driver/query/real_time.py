"""How every query writes: in real time, to Kafka, a batch committed before the next begins."""

from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from sojourn.spark.driver.state.folder_address import hadoop_address

__all__ = ["OPTIONS", "start_real_time"]

OPTIONS: Mapping[str, str] = {
    # By default Spark commits a batch while the next one runs already. What batches leave to
    # each other, what hosts remember and what is drained all rely on the order.
    "asyncProgressTrackingEnabled": "false",
}
"""What each query sets beside its own options."""


def start_real_time(
    frame: DataFrame, *, name: str, kafka: Mapping[str, str], checkpoint: Path, batch_s: float
) -> StreamingQuery:
    """Return the running query that writes *frame* to Kafka, and commits every *batch_s*."""
    _drop_unfinished(checkpoint)
    written = (
        frame.writeStream.format("kafka")
        .options(**kafka)
        .options(**OPTIONS)
        .outputMode("update")
        .option("checkpointLocation", hadoop_address(checkpoint))
        .queryName(name)
    )
    # a trigger that PySpark's own types do not know yet
    query: StreamingQuery = written.trigger(realTime=f"{batch_s:g} seconds").start()  # type: ignore[call-overload]
    return query


def _drop_unfinished(checkpoint: Path) -> None:
    """Remove what Spark was writing when it was killed.

    It leaves such files alone, but where nothing is committed yet it refuses to start.
    """
    for log in ("offsets", "commits"):
        for path in (checkpoint / log).glob(".*.tmp*"):
            path.unlink(missing_ok=True)

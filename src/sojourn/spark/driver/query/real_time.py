"""The start of every query: in Real-Time Mode, to Kafka, with commits in order."""

from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from sojourn.spark.driver.state.folder_address import hadoop_address

__all__ = ["OPTIONS", "start_real_time"]

OPTIONS: Mapping[str, str] = {
    # By default Spark commits a batch asynchronously, while the next one already runs. Cuts,
    # the state of hosts and draining all rely on a commit before the next batch begins.
    "asyncProgressTrackingEnabled": "false",
}
"""Options that all queries share."""


def start_real_time(
    frame: DataFrame, *, name: str, kafka: Mapping[str, str], checkpoint: Path, batch_s: float
) -> StreamingQuery:
    """Start a query that writes *frame* to Kafka and commits offsets every *batch_s*."""
    _drop_unfinished(checkpoint)
    written = (
        frame.writeStream.format("kafka")
        .options(**kafka)
        .options(**OPTIONS)
        .outputMode("update")
        .option("checkpointLocation", hadoop_address(checkpoint))
        .queryName(name)
    )
    # PySpark's type hints do not have this trigger yet
    query: StreamingQuery = written.trigger(realTime=f"{batch_s:g} seconds").start()  # type: ignore[call-overload]
    return query


def _drop_unfinished(checkpoint: Path) -> None:
    """Remove temporary files that Spark was writing when it was killed.

    Spark ignores them, except before the first commit: then it refuses to start.
    """
    for log in ("offsets", "commits"):
        for path in (checkpoint / log).glob(".*.tmp*"):
            path.unlink(missing_ok=True)

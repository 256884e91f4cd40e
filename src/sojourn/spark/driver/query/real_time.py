"""What every query begins and ends with: topics of Kafka, and commits in Real-Time Mode."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

OPTIONS: Mapping[str, str] = {
    # By default Spark commits a batch asynchronously, while the next one already runs. Cuts,
    # the state of hosts and draining all rely on a commit before the next batch begins.
    "asyncProgressTrackingEnabled": "false",
}
"""Options that all queries share."""


def read_topics(
    spark: SparkSession, kafka: Mapping[str, str], topics: Iterable[str], starting: str
) -> DataFrame:
    """Return the records of *topics* from the offsets *starting*, in Spark's format."""
    return (
        spark.readStream.format("kafka")
        .options(**kafka)
        .option("subscribe", ",".join(topics))
        .option("startingOffsets", starting)
        .option("includeHeaders", "true")
        .load()
    )


def start_real_time(
    frame: DataFrame, *, name: str, kafka: Mapping[str, str], checkpoint: Path, batch_s: float
) -> StreamingQuery:
    """Start a query that writes *frame* to Kafka and commits offsets every *batch_s*."""
    _drop_unfinished(checkpoint)
    # Spark may take a plain path for one of HDFS; Hadoop does not decode percent-encoding
    address = f"file://{checkpoint.absolute()}"
    written = (
        frame.writeStream.format("kafka")
        .options(**kafka)
        .options(**OPTIONS)
        .outputMode("update")
        .option("checkpointLocation", address)
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

"""What makes a query real-time: its trigger, and records that Python receives immediately.

Spark collects rows for Python until it has a number of rows or bytes. It checks these limits
only after it has fetched the next row, which may take any time. To be transferred immediately,
a record carries padding as large as a whole transfer, and is followed by an empty row.

A record need not be transferred immediately if others of its partition are known to follow. So
Java must know the end offsets of partitions, which are kept as system properties. `KnownEnds`
sets them in the process of the session. It does not reach the executors of a cluster: there
relays yield end offsets as rows among their results, and `without_end_rows` sets the
properties. If the end of a partition is unknown, each of its records is transferred
immediately. A known end may be out of date; then a record is transferred earlier than
necessary, but never waits for a record that does not exist.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.streaming.query import StreamingQuery

from sojourn.spark.driver.master import TRANSFER_BYTES

OPTIONS: Mapping[str, str] = {
    # By default Spark commits a batch asynchronously, while the next one already runs. Cuts,
    # the state of hosts and draining all rely on a commit before the next batch begins.
    "asyncProgressTrackingEnabled": "false",
}
"""Options that all queries share."""

# The last offsets of a partition may be transaction markers, which are not records.
_MARGIN = 8
_SYSTEM = "java.lang.System"


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


def transferred(frame: DataFrame, record: Column, ends: str = "") -> DataFrame:
    """Return a record and its padding for each row of Kafka's source, and empty rows.

    *ends* is the prefix of the system properties with end offsets; empty without them.
    """
    at_once = sql.lit(True)
    if ends:
        at_once = sql.coalesce(sql.col("offset") + _MARGIN >= _known_end(ends), at_once)
    padding = sql.when(at_once, sql.lit(bytes(TRANSFER_BYTES)))
    row = sql.struct(record.alias("record"), padding.alias("padding"))
    rows = sql.when(at_once, sql.array(row, sql.lit(None))).otherwise(sql.array(row))
    # The padding comes last: it is larger than Java's buffer, so writing it flushes the record.
    return frame.select(sql.explode(rows).alias("row")).select("row.record", "row.padding")


def _known_end(ends: str) -> Column:
    topic, partition = sql.col("topic"), sql.col("partition").cast("string")
    name = sql.concat(sql.lit(f"{ends}/"), topic, sql.lit("/"), partition)
    return sql.reflect(sql.lit(_SYSTEM), sql.lit("getProperty"), name).try_cast("bigint")


def without_end_rows(results: DataFrame) -> DataFrame:
    """Drop the `end_row`s among results, and set their properties on the task's executor."""
    key, value = (sql.col(name).cast("string") for name in ("key", "value"))
    before = sql.reflect(sql.lit(_SYSTEM), sql.lit("setProperty"), key, value)
    # `setProperty` returns the previous value, a number or null, so the condition is false or
    # null for each end row, which drops it; being evaluated is its purpose
    return results.where(sql.when(sql.col("topic").isNull(), before == "").otherwise(True))


class KnownEnds:
    """End offsets of *topics*, as system properties of the session's Java process.

    There is one property for each partition: `name/topic/partition`.
    """

    def __init__(self, session: SparkSession, name: str, topics: Iterable[str]) -> None:
        self._java: Any = session.sparkContext._jvm  # noqa: SLF001
        self._name, self._topics = name, frozenset(topics)
        self._told: dict[str, int] = {}

    def tell(self, ends: Mapping[str, Mapping[int, int]]) -> None:
        """Set the properties of ends that have changed; ignore errors, as Java may be gone."""
        for topic in self._topics & ends.keys():
            for partition, end in ends[topic].items():
                name = f"{self._name}/{topic}/{partition}"
                if self._told.get(name) != end:
                    with suppress(Exception):  # py4j raises errors of many types
                        self._java.java.lang.System.setProperty(name, str(end))
                    self._told[name] = end


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

"""The real-time query of a deduplicated sink: it writes only new records.

Each partition of the stream is written to the partition of the sink with the same number, so
the tasks (`sojourn.spark.task.deduplicate`) work independently of each other.
"""

from pyspark.sql import SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.streaming.query import StreamingQuery

from sojourn.spark.driver.query.real_time import start_real_time
from sojourn.spark.driver.query.transfer import transferred
from sojourn.spark.task.deduplicate.new_records import Deduplication, new_alone
from sojourn.spark.task.rows import OUTPUT, SCHEMA

__all__ = ["start_deduplication"]


def start_deduplication(spark: SparkSession, sink: Deduplication) -> StreamingQuery:
    """Start the query that copies records to *sink* and drops duplicates."""
    source = (
        spark.newSession()
        .readStream.format("kafka")
        .options(**sink.spark)
        .option("subscribe", sink.reads)
        .option("startingOffsets", sink.starting)
        .option("includeHeaders", "true")
        .load()
    )
    record = sql.struct(*(name for name in SCHEMA.names if name != "topic"), "offset")
    rows = transferred(source, record, sink.ends)
    return start_real_time(
        rows.mapInArrow(new_alone(sink), OUTPUT),
        name=f"sink {sink.name}",
        kafka=sink.spark,
        checkpoint=sink.checkpoint,
        batch_s=sink.batch_s,
    )

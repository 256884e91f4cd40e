"""The same work with one Spark task per processor: what Spark offers by itself.

`repartition(k)` deals records out to k tasks; another number of them is another query.
"""

from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import functions as sql


@dataclass(frozen=True)
class Repartitioned:
    """A query from one topic to another, over so many *tasks*."""

    servers: str
    reads: str
    writes: str
    checkpoint: Path
    tasks: int = 1
    batch_s: float = 60.0


def passing():
    """Return what passes records on; made here, so that it travels to a Spark task."""

    def run(batches):
        for batch in batches:
            kept = batch.filter(batch.column(0).is_valid())
            if kept.num_rows:
                yield kept

    return run


def working(service_s):
    """Return what waits for each record, and says which process it was and when it began."""

    def run(batches):
        import os  # noqa: PLC0415 - it runs in a Spark task
        import time  # noqa: PLC0415

        import pyarrow as pa  # noqa: PLC0415

        for batch in batches:
            for value in batch.column(0).to_pylist():
                if value is None:
                    continue
                began_s = time.time()
                time.sleep(service_s)
                out = f"{value.decode()} {os.getpid()} {began_s!r}".encode()
                yield pa.RecordBatch.from_pydict({"value": [out]})

    return run


def start(spark, query, function):
    """Return the running query."""
    source = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", query.servers)
        .option("subscribe", query.reads)
        .option("startingOffsets", "earliest")
        .load()
        .select("value")
        .repartition(query.tasks)
    )
    marked = source.select(sql.explode(sql.array("value", sql.lit(None))).alias("value"))
    return (
        marked.mapInArrow(function, "value binary")
        .writeStream.format("kafka")
        .option("kafka.bootstrap.servers", query.servers)
        .option("topic", query.writes)
        .outputMode("update")
        .option("checkpointLocation", str(query.checkpoint))
        .trigger(realTime=f"{query.batch_s:g} seconds")
        .start()
    )

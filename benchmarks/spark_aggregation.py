"""Words counted by Spark itself, in real-time mode, until standard input is closed.

    python benchmarks/spark_aggregation.py '{"servers": …, "reads": …, "writes": …, …}'

`groupBy("word")` in update mode, with states in RocksDB and one partition of them.
"""

import json
import os
import sys
from pathlib import Path

from pyspark.sql import functions as sql

from sojourn.spark.driver.jvm.jars import resolve_jars
from sojourn.spark.driver.jvm.session import end_session, new_session
from sojourn.spark.driver.query.real_time import start_real_time

_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def counts(session, servers, topic):
    """Return the counts of words, and the last record that each is of."""
    records = (
        session.readStream.format("kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .load()
        .select(
            sql.from_json(sql.col("value").cast("string"), "seed long, word string").alias("r")
        )
        .select("r.*")
    )
    counted = records.groupBy("word").agg(
        sql.max("seed").alias("seed"), sql.count("*").alias("n")
    )
    return counted.select(sql.to_json(sql.struct("seed", "word", "n")).alias("value"))


def main(text):
    """Run it."""
    asked = json.loads(text)
    folder = Path(asked["state"])
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what libraries print is no answer
    options = {
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.streaming.stateStore.providerClass": _ROCKSDB,
    }
    session = new_session(
        "counts", jars=resolve_jars(), slots=4, options=options, log=folder / "spark.log"
    )
    query = start_real_time(
        counts(session, asked["servers"], asked["reads"]),
        name="counts",
        kafka={"kafka.bootstrap.servers": asked["servers"], "topic": asked["writes"]},
        checkpoint=folder / "checkpoint",
        batch_s=asked["commit_s"],
    )
    answers.write("{}\n")
    sys.stdin.read()
    if (failed := query.exception()) is not None:
        print(failed, file=sys.stderr)
    query.stop()
    end_session(session)


if __name__ == "__main__":
    main(sys.argv[1])

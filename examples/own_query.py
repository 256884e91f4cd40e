"""Functions as a step of a Structured Streaming query of one's own.

    python examples/own_query.py localhost:9092 STATE

Spark reads the topic `lines` and drops empty ones, the functions of `words` below split and
shout them in processes of their own, and Spark keeps the long words and writes them to the
topic of their stream, `words.shout`. Both topics must exist. Ctrl-C ends it.
"""  # noqa: INP001 - a program on its own

import sys
from collections.abc import Iterator
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

import sojourn as sj
from sojourn.spark.driver.jvm.jars import resolve_jars
from sojourn.spark.stage import Stage

words = sj.App("words")
lines = words.source("lines", schema="line string", topic="lines")


@words.operator(reads=lines, emits="word string")
def split(line: str) -> Iterator[tuple[str]]:
    """Yield the words of a line."""
    for word in line.split():
        yield (word,)


@words.operator(reads=split, emits="word string")
def shout(word: str) -> Iterator[tuple[str]]:
    """Yield a word in capitals."""
    yield (word.upper(),)


words.sink(shout)


def long_words(source: DataFrame, stage: Stage) -> DataFrame:
    """Return what is written: Spark's own steps, before and after the functions."""
    filled = source.where(sql.get_json_object(sql.col("value").cast("string"), "$.line") != "")
    shouted = stage(filled)
    word = sql.get_json_object(sql.col("value").cast("string"), "$.word")
    return shouted.where(sql.length(word) > 3)


def main(servers: str, state: str) -> None:
    """Run until Ctrl-C."""
    jars = ",".join(map(str, resolve_jars().spark))
    builder = SparkSession.builder.master("local[4]").config("spark.jars", jars)
    spark = builder.config(map=dict(Stage.CONF)).getOrCreate()
    source = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", "lines")
        .option("startingOffsets", "earliest")
        .option("includeHeaders", "true")
        .load()
    )
    folder = Path(state)
    with Stage("own_query:words", state=folder, processors={"shout": 2}, batch_s=10) as stage:
        query = (
            long_words(source, stage)
            .writeStream.format("kafka")
            .option("kafka.bootstrap.servers", servers)
            .option("checkpointLocation", str(folder / "checkpoint"))
            .options(**Stage.OPTIONS)
            .outputMode("update")
            .trigger(realTime="10 seconds")
            .start()
        )
        query.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:3])

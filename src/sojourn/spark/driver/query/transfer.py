"""How records get from Spark to Python: at once, or together while more are waiting.

Spark collects rows for Python until it has a number of rows or bytes. Before it looks at either
it asks for the next row, and waits for one. So a record that has to leave at once carries
padding, as many bytes as a transfer has, and is followed by an empty row.

A record need not leave at once while others of its partition are known to follow it. Where
partitions end is told to Java: by `KnownEnds` in the process of the session, and on executors
of a cluster, which that does not reach, by rows that relays yield among their results
(`without_end_rows`). If nothing is told of a partition, each of its records leaves
at once. What is told may be old: then a record leaves earlier than it had to, and never
waits for one that is not there.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql

from sojourn.spark.driver.streaming import TRANSFER_BYTES

__all__ = ["KnownEnds", "transferred", "without_end_rows"]

# The last offsets of a partition may be no records, but the marks of transactions.
_MARGIN = 8
_SYSTEM = "java.lang.System"


def transferred(frame: DataFrame, record: Column, ends: str = "") -> DataFrame:
    """Return a record and its padding for each row of Kafka's source, and empty rows.

    *ends* is the name under which it is told where partitions end; empty if it is not.
    """
    at_once = sql.lit(True)
    if ends:
        at_once = sql.coalesce(sql.col("offset") + _MARGIN >= _known_end(ends), at_once)
    padding = sql.when(at_once, sql.lit(bytes(TRANSFER_BYTES)))
    row = sql.struct(record.alias("record"), padding.alias("padding"))
    rows = sql.when(at_once, sql.array(row, sql.lit(None))).otherwise(sql.array(row))
    # the padding comes last: it takes with it what is before it in Java's buffer
    return frame.select(sql.explode(rows).alias("row")).select("row.record", "row.padding")


def _known_end(ends: str) -> Column:
    topic, partition = sql.col("topic"), sql.col("partition").cast("string")
    name = sql.concat(sql.lit(f"{ends}/"), topic, sql.lit("/"), partition)
    return sql.reflect(sql.lit(_SYSTEM), sql.lit("getProperty"), name).try_cast("bigint")


def without_end_rows(results: DataFrame) -> DataFrame:
    """Let Java know, on the executor of each task, what `end_row`s tell; drop them."""
    key, value = (sql.col(name).cast("string") for name in ("key", "value"))
    before = sql.reflect(sql.lit(_SYSTEM), sql.lit("setProperty"), key, value)
    # what was known before is a number, or that there was none: of no such row this is true
    return results.where(sql.when(sql.col("topic").isNull(), before == "").otherwise(True))


class KnownEnds:
    """Tells Java, in the session's process, where the partitions of *topics* end.

    It is a property of the system for each partition, whose name begins with *name*.
    """

    def __init__(self, session: SparkSession, name: str, topics: Iterable[str]) -> None:
        self._java: Any = session.sparkContext._jvm  # noqa: SLF001
        self._name, self._topics = name, frozenset(topics)
        self._told: dict[str, int] = {}

    def tell(self, ends: Mapping[str, Mapping[int, int]]) -> None:
        """Tell what has changed; nobody minds if Java is gone."""
        for topic in self._topics & ends.keys():
            for partition, end in ends[topic].items():
                name = f"{self._name}/{topic}/{partition}"
                if self._told.get(name) != end:
                    with suppress(Exception):  # whatever Java's client raises then
                        self._java.java.lang.System.setProperty(name, str(end))
                    self._told[name] = end

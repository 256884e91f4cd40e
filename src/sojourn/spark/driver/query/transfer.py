"""Transfer of records from Spark to Python: immediately, or in groups during a backlog.

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
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql

from sojourn.spark.driver.master import TRANSFER_BYTES

# The last offsets of a partition may be transaction markers, which are not records.
_MARGIN = 8
_SYSTEM = "java.lang.System"


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

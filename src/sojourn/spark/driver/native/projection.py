"""Projections as steps of the query of a part, before its functions and behind them.

Rows that are not for a projection pass as they are. Each row makes one, and none is moved: a
part needs one row for each offset, in order.
"""

from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from sojourn.app.operator import NativeOperator
from sojourn.spark.driver.native.frame import (
    ERROR,
    SOURCE,
    Address,
    addressed,
    read_stream,
    worked,
)
from sojourn.spark.driver.native.headers import KAFKA, is_for, with_blobs
from sojourn.spark.driver.native.payload import at, has_value, to_payload
from sojourn.spark.driver.native.schema import native_schema, schema_read

__all__ = ["REFUSED", "project_read", "project_written"]

REFUSED = "error"
"""The column of why a projection could not read a row; null where it could."""

# beside the columns of a stream, as those of `sojourn.spark.driver.native.frame`
_ROW, _HERE = "sojourn-row", "sojourn-here"


def project_read(
    frame: DataFrame, projections: Mapping[str, NativeOperator], dead_letters: str
) -> DataFrame:
    """Return what Kafka's source has read, as *projections*, by their topic, make it.

    A record stays the one it is: its payload and binary columns are others, all else is the
    same. One that a projection cannot read is left as it is, and says why. So is one that was
    put back in for another operator, and one without a value, which says nothing.
    """
    rows = frame.select("key", *KAFKA, sql.lit(None).cast("string").alias(REFUSED))
    for topic, operator in projections.items():
        mine = is_for(sql.col("headers"), dead_letters, operator.name)
        here = (sql.col("topic") == topic) & mine & has_value(sql.col("value"))
        rows = _read(rows, operator, here)
    return rows


def _read(rows: DataFrame, operator: NativeOperator, here: Column) -> DataFrame:
    made = native_schema(rows.sparkSession, operator)
    row, error = at(SOURCE)[_ROW], sql.when(at(SOURCE)[_HERE], at(ERROR))
    sound = at(SOURCE)[_HERE] & at(ERROR).isNull()
    changed = {
        "value": sql.when(sound, to_payload(made).cast("binary")).otherwise(row["value"]),
        "headers": sql.when(sound, with_blobs(row["headers"], made)).otherwise(row["headers"]),
        REFUSED: sql.coalesce(row[REFUSED], error),
    }
    return _worked(rows, operator, here).select(
        *(changed.get(name, row[name]).alias(name) for name in rows.columns)
    )


def project_written(
    frame: DataFrame, projections: Mapping[str, NativeOperator], address: Address
) -> DataFrame:
    """Return what leaves a part as *projections*, by the topic that each writes, make it.

    Key, what entered the part and the partition, where one is given, stay as they are. What
    cannot be made is a dead letter, at the *address* of these.
    """
    for topic, operator in projections.items():
        frame = _written(frame, operator, replace(address, writes=topic))
    return frame


def _written(rows: DataFrame, operator: NativeOperator, address: Address) -> DataFrame:
    made = native_schema(rows.sparkSession, operator)
    nowhere = rows.select(
        "*",
        sql.lit(None).cast("bigint").alias("offset"),
        sql.lit(None).cast("timestamp").alias("timestamp"),
    )
    here, row = sql.col("topic") == address.writes, at(_ROW)
    changed = addressed(
        _worked(nowhere, operator, here), operator, made, address, beside=(_ROW, _HERE)
    )
    # a dead letter goes to any partition of its topic
    kept = sql.when(~at(_HERE) | (sql.col("topic") == address.writes), row["partition"])
    columns = {
        name: sql.when(at(_HERE), sql.col(name)).otherwise(row[name])
        for name in ("topic", "key", "value", "headers")
    }
    columns["partition"] = kept
    return changed.select(*(columns[name].alias(name) for name in rows.columns))


def _worked(rows: DataFrame, operator: NativeOperator, here: Column) -> DataFrame:
    """Return what a projection makes of rows *here*; others have an error, and make nothing."""
    own = rows.select(
        sql.struct("*").alias(_ROW),
        here.alias(_HERE),
        sql.when(here, sql.col("value")).alias("value"),
        *(name for name in ("key", *KAFKA) if name != "value"),
    )
    schema = schema_read(operator, None)
    read = read_stream(own, operator, schema, beside=(_ROW, _HERE))
    return worked(read, operator, operator.columns)

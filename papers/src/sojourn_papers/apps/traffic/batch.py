"""The same rows by a batch query of Spark, from a Parquet file of the reports."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from sojourn.spark.driver.jvm.jars import Jars, resolve_jars
from sojourn.spark.driver.jvm.session import end_session, new_session
from sojourn_papers.apps.traffic.query import batch_query
from sojourn_papers.apps.traffic.settings import Settings

_COLUMNS = pa.schema(
    [
        ("trip", pa.string()),
        ("at_s", pa.int64()),
        ("lat_e6", pa.int32()),
        ("lon_e6", pa.int32()),
    ]
)


def write_reports(path: Path, reports: Iterable[Sequence[object]]) -> None:
    """Write *reports* to a Parquet file."""
    columns = zip(*reports, strict=True)
    arrays = [pa.array(c, field.type) for c, field in zip(columns, _COLUMNS, strict=True)]
    parquet.write_table(pa.Table.from_arrays(arrays, schema=_COLUMNS), path)


def batch_rows(
    path: Path, settings: Settings, *, jars: Jars | None = None
) -> frozenset[tuple[object, ...]]:
    """Return the rows that Spark's batch query gives for the reports of a file."""
    session = new_session("batch", jars=jars or resolve_jars(), slots=2)
    try:
        session.conf.set("spark.sql.shuffle.partitions", "2")
        session.read.parquet(str(path)).createOrReplaceTempView("positions")
        return frozenset(map(tuple, session.sql(batch_query("positions", settings)).collect()))
    finally:
        end_session(session)

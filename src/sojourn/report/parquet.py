"""Writing the roots of a simulation to a Parquet file."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sojourn.errors import BadFile, BadInput
from sojourn.optional import optional

if TYPE_CHECKING:  # importing the simulator takes a second
    from sojourn.simulate.run import Portion

__all__ = ["roots_to_parquet"]

# Roots per row group: many small groups make a file large and slow to read.
_TOGETHER = 100_000


@contextmanager
def roots_to_parquet(path: Path | None) -> Iterator["Portion"]:
    """Yield a function that writes a portion of roots: birth_s, completion_s and sum_s.

    Without a *path* it does nothing. An unfinished file is deleted.
    """
    if path is None:
        yield lambda _part, _roots: None
        return
    with optional("exporting needs", "parquet", BadInput):
        import pyarrow as pa  # noqa: PLC0415 - slow to import
        from pyarrow import parquet  # noqa: PLC0415
    columns = ("birth_s", "completion_s", "sum_s")
    schema = pa.schema([(name, pa.float64()) for name in columns])
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        writer = parquet.ParquetWriter(path, schema, compression="zstd")
    except OSError as error:
        problem = f"cannot be written: {error}"
        raise BadFile(str(path), problem, "choose another path") from error

    waiting: list[Any] = []

    def write(_part: float, roots: Any) -> None:  # noqa: ANN401 - a structured array
        if not len(roots):
            return
        arrays = [pa.array(roots[name].copy()) for name in columns]
        waiting.append(pa.Table.from_arrays(arrays, schema=schema))
        if sum(map(len, waiting)) >= _TOGETHER:
            flush()

    def flush() -> None:
        if waiting:
            writer.write_table(pa.concat_tables(waiting))
            waiting.clear()

    try:
        yield write
        flush()
    except BaseException:
        writer.close()
        path.unlink(missing_ok=True)
        raise
    writer.close()

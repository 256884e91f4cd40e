"""Export of the roots of a simulation, or of the states of keys, to Parquet files."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sojourn.app.datatype import Array, Atom, DataType, Decimal, Map, Struct
from sojourn.errors import BadFile, BadInput
from sojourn.registry import optional

if TYPE_CHECKING:  # importing the simulator takes a second, and the store is optional
    from sojourn.simulate.run import Portion
    from sojourn.spark.driver.state.key_states import KeyStates

# Roots per row group: many small groups make a file large and slow to read.
_TOGETHER = 100_000
# Rows per row group of states: fewer, because rows have any size and a group is in memory.
_ROWS = 10_000
_ALIASES = {
    "string": "string", "boolean": "bool", "tinyint": "int8", "smallint": "int16",
    "int": "int32", "bigint": "int64", "float": "float", "double": "double",
    "date": "date32", "binary": "binary", "timestamp_ntz": "timestamp[us]",
}  # fmt: skip


@contextmanager
def roots_to_parquet(path: Path | None, *, together: int = _TOGETHER) -> Iterator["Portion"]:
    """Yield a function that writes a portion of roots: birth_s, completion_s and sum_s.

    Portions are buffered until they have *together* roots. Without a *path* the function does
    nothing. The file is deleted if an exception leaves the block.
    """
    if path is None:
        yield lambda _part, _roots: None
        return
    pa = _pyarrow()
    columns = ("birth_s", "completion_s", "sum_s")
    schema = pa.schema([(name, pa.float64()) for name in columns])
    waiting: list[Any] = []

    def write(_part: float, roots: Any) -> None:  # noqa: ANN401 - a structured array
        if not len(roots):
            return
        arrays = [pa.array(roots[name].copy()) for name in columns]
        waiting.append(pa.Table.from_arrays(arrays, schema=schema))
        if sum(map(len, waiting)) >= together:
            flush()

    def flush() -> None:
        if waiting:
            writer.write_table(pa.concat_tables(waiting))
            waiting.clear()

    with _writer(path, schema) as writer:
        yield write
        flush()


def states_to_parquet(
    path: Path, states: "KeyStates", operator: str, *, together: int = _ROWS
) -> int:
    """Write a row for each key of an operator, and return the number of rows.

    The columns of the key precede the fields of the state; a field with the name of another
    column gets the prefix `state_`. A row group has *together* rows. The file is deleted if
    writing fails.
    """
    from sojourn.app.state import key_values  # noqa: PLC0415 - optional

    form = states.form(operator)
    fields = form.fields.schema.fields
    types = {field.name: field.type for field in form.key}
    for field in fields:
        name = field.name
        while name in types:
            name = f"state_{name}"
        types[name] = field.type
    rows = (
        (*key_values(form.key, found.key), *(found.values[field.name] for field in fields))
        for found in states.every(operator)
    )
    return _rows_to_parquet(path, types, rows, together)


def _rows_to_parquet(
    path: Path, types: Mapping[str, DataType], rows: Iterator[tuple[Any, ...]], together: int
) -> int:
    pa, number = _pyarrow(), 0
    schema = pa.schema([(name, _arrow_type(pa, kind)) for name, kind in types.items()])
    with _writer(path, schema) as writer:
        while some := list(islice(rows, together)):
            arrays = [
                pa.array(values, field.type)
                for values, field in zip(zip(*some, strict=True), schema, strict=True)
            ]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
            number += len(some)
    return number


def _pyarrow() -> Any:  # noqa: ANN401 - a module
    with optional("exporting needs", "parquet", BadInput):
        import pyarrow as pa  # noqa: PLC0415 - slow to import
    return pa


@contextmanager
def _writer(path: Path, schema: Any) -> Iterator[Any]:  # noqa: ANN401 - of pyarrow
    """Yield a writer of a file, which is deleted if an exception leaves the block."""
    from pyarrow import parquet  # noqa: PLC0415 - slow to import

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        writer = parquet.ParquetWriter(path, schema, compression="zstd")
    except OSError as error:
        problem = f"cannot be written: {error}"
        raise BadFile(str(path), problem, "choose another path") from error
    try:
        yield writer
    except BaseException:
        writer.close()
        path.unlink(missing_ok=True)
        raise
    writer.close()


def _arrow_type(pa: Any, kind: DataType) -> Any:  # noqa: ANN401 - of pyarrow
    """Return the Arrow type that matches what Spark writes to Parquet for *kind*."""
    match kind:
        case Atom(name):
            alias = _ALIASES.get(name)
            made = pa.type_for_alias(alias) if alias else pa.timestamp("us", "UTC")
        case Decimal(precision, scale):
            made = pa.decimal128(precision, scale)
        case Array(element):
            made = pa.list_(_arrow_type(pa, element))
        case Map(key, value):
            made = pa.map_(_arrow_type(pa, key), _arrow_type(pa, value))
        case Struct(fields):
            made = pa.struct([(field.name, _arrow_type(pa, field.type)) for field in fields])
    return made

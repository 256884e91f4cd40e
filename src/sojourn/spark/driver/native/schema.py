"""The schema of what a native operator writes, known before anything is started."""

from collections.abc import Iterable

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession, types

from sojourn.app import datatype
from sojourn.app.datatype import Array, Atom, DataType, Field, Map, Struct
from sojourn.app.operator import NativeOperator
from sojourn.app.schema import Schema
from sojourn.errors import BadApplication, BadSchema
from sojourn.spark.driver.native.frame import own_session, read_stream, worked
from sojourn.spark.driver.native.payload import at
from sojourn.text import shown

__all__ = ["native_schema", "same_kind", "schema_of", "schema_read"]

# what a topic has, for expressions to be tried on before there is one
_TOPIC = (
    "cast(null as binary) key",
    "cast(null as binary) value",
    "cast(null as array<struct<key: string, value: binary>>) headers",
    "'' topic",
    "0 partition",
    "0L offset",
    "timestamp",
)


def native_schema(
    spark: SparkSession, operator: NativeOperator, reads: Schema | None = None
) -> Schema:
    """Return the schema of what *operator* writes; nothing is started.

    *reads* is the schema of what it reads, where its stream has none. Raise a
    `BadApplication` that names the column if Spark does not take an expression.
    """
    topic = own_session(spark).readStream.format("rate").load().selectExpr(*_TOPIC)
    frame = read_stream(topic, operator, schema_read(operator, reads))
    try:
        tried = _tried(frame, operator, operator.columns)
    except AnalysisException as error:
        raise _refused(frame, operator) or _bad(operator, "columns", error) from error
    try:
        made = schema_of(tried.select(*map(at, operator.stream.columns)).schema)
    except BadSchema as error:
        place = f"operators.{operator.name}.columns{error.place.removeprefix('schema')}"
        raise BadSchema(place, error.problem, error.way_out) from None
    return _promised(operator, made)


def schema_read(operator: NativeOperator, given: Schema | None) -> Schema:
    """Return the schema of what *operator* reads, or raise a `BadApplication`."""
    (stream,) = operator.reads
    schema = stream.schema or given
    if schema is None:
        problem = f"the schema of the stream {stream.name} is not known"
        way_out = "set emits= of the operator that writes it"
        raise BadApplication(f"operators.{operator.name}.reads", problem, way_out)
    return schema


def _tried(frame: DataFrame, operator: NativeOperator, columns: Iterable[str]) -> DataFrame:
    """Return what the operator makes, or raise what Spark would raise at the start."""
    made = worked(frame, operator, columns)
    jvm = frame.sparkSession._jvm  # noqa: SLF001 - this check has no other door
    catalyst = jvm.org.apache.spark.sql.catalyst  # type: ignore[union-attr]
    catalyst.analysis.UnsupportedOperationChecker.checkForStreaming(
        made._jdf.queryExecution().analyzed(),  # noqa: SLF001
        jvm.org.apache.spark.sql.streaming.OutputMode.Update(),  # type: ignore[union-attr]
    )
    return made


def _refused(frame: DataFrame, operator: NativeOperator) -> BadApplication | None:
    """Return what is wrong with the first column without which there would be no error."""
    names = list(operator.columns)
    for last, column in enumerate(names):
        try:
            _tried(frame, operator, names[: last + 1])  # as one may use those before it
        except AnalysisException as error:
            return _bad(operator, f"columns.{column}", error)
    return None


def _bad(operator: NativeOperator, place: str, error: AnalysisException) -> BadApplication:
    said = str(error).strip().splitlines()[0].rstrip(";.")
    return BadApplication(
        f"operators.{operator.name}.{place}",
        said,
        "write an expression that Spark SQL supports in streaming queries",
    )


def _promised(operator: NativeOperator, made: Schema) -> Schema:
    """Return what *emits* promises, if that is what is made; what is made, if it is silent."""
    promised = operator.stream.schema
    if promised is None:
        return made
    for found, said in zip(made.fields, promised.fields, strict=True):
        if not same_kind(found.type, said.type):
            raise BadSchema(
                f"operators.{operator.name}.emits",
                f"the column {shown(said.name)} is {found.type}, but emits= says {said.type}",
                f"write {found.type}, or cast(… as {said.type})",
            )
    return promised


def same_kind(one: DataType, other: DataType) -> bool:
    """Tell whether two types are the same but for what may be null."""
    match one, other:
        case Array(mine), Array(yours):
            return same_kind(mine, yours)
        case Map(), Map():
            return one.key == other.key and same_kind(one.value, other.value)
        case Struct(mine), Struct(yours) if len(mine) == len(yours):
            return all(
                a.name == b.name and same_kind(a.type, b.type)
                for a, b in zip(mine, yours, strict=True)
            )
        case _:
            return one == other


def schema_of(made: types.StructType) -> Schema:
    """Return the schema of columns that Spark has made, or raise a `BadSchema`.

    >>> whole, word = types.LongType(), types.StringType()
    >>> made = types.StructType().add("word", word).add("n", whole, nullable=False)
    >>> print(schema_of(made))
    word string, n bigint not null
    """
    return Schema(tuple(_field(field) for field in made.fields))


def _field(field: types.StructField) -> Field:
    try:
        return Field(field.name, _kind(field.dataType), field.nullable)
    except BadSchema as error:
        place = f"schema.{field.name}{error.place.removeprefix('schema')}"
        raise BadSchema(place, error.problem, error.way_out) from None


def _kind(made: types.DataType) -> DataType:
    match made:
        case types.DecimalType():
            return datatype.Decimal(made.precision, made.scale)
        case types.ArrayType():
            return Array(_kind(made.elementType))
        case types.MapType():
            return Map(_kind(made.keyType), _kind(made.valueType))
        case types.StructType():
            return Struct(tuple(_field(field) for field in made.fields))
        case types.StringType() | types.CharType() | types.VarcharType():
            return Atom("string")
    if (name := datatype.SYNONYMS.get(made.simpleString())) is None:
        problem = f"{made.simpleString()} is not supported as the type of a column"
        raise BadSchema("schema", problem, "cast it, as in cast(… as string)")
    return Atom(name)

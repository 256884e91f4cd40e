"""The output schema of a native operator, derived by Spark before any query starts."""

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

# the columns of Kafka's source, to analyse expressions without a topic
_TOPIC = (
    "cast(null as binary) key",
    "cast(null as binary) value",
    "cast(null as array<struct<key: string, value: binary>>) headers",
    "'' topic",
    "0 partition",
    "0L offset",
    "timestamp",
)


def native_schema(spark: SparkSession, operator: NativeOperator) -> Schema:
    """Return the schema of the records that *operator* writes, without starting a query.

    Raise `BadApplication` with the name of the column if Spark rejects an expression.
    """
    # any streaming source serves for the analysis: nothing is read
    topic = own_session(spark).readStream.format("rate").load().selectExpr(*_TOPIC)
    frame = read_stream(topic, operator, schema_read(operator))
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


def schema_read(operator: NativeOperator) -> Schema:
    """Return the schema of the input of *operator*; raise `BadApplication` if it is unknown."""
    (stream,) = operator.reads
    if stream.schema is None:
        problem = f"the schema of the stream {stream.name} is not known"
        way_out = "set emits= of the operator that writes it"
        raise BadApplication(f"operators.{operator.name}.reads", problem, way_out)
    return stream.schema


def _tried(frame: DataFrame, operator: NativeOperator, columns: Iterable[str]) -> DataFrame:
    """Return the results of the operator, or raise the error that Spark raises at the start."""
    made = worked(frame, operator, columns)
    jvm = frame.sparkSession._jvm  # noqa: SLF001 - there is no public API for this check
    # Spark itself calls this checker only when a query starts
    catalyst = jvm.org.apache.spark.sql.catalyst  # type: ignore[union-attr]
    catalyst.analysis.UnsupportedOperationChecker.checkForStreaming(
        made._jdf.queryExecution().analyzed(),  # noqa: SLF001
        jvm.org.apache.spark.sql.streaming.OutputMode.Update(),  # type: ignore[union-attr]
    )
    return made


def _refused(frame: DataFrame, operator: NativeOperator) -> BadApplication | None:
    """Return the error of the first column that Spark rejects; None if it rejects none."""
    names = list(operator.columns)
    for last, column in enumerate(names):
        try:
            _tried(frame, operator, names[: last + 1])  # a column may use those before it
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
    """Return the schema that emits= declares, or *made* if it declares none.

    Raise `BadSchema` if the types differ.
    """
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
    """Return whether two types are equal apart from nullability."""
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
    """Return the schema of Spark's columns. Raise `BadSchema` if a type is not supported.

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

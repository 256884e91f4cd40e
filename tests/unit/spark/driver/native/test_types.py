import pytest
from pyspark.sql import types

from sojourn.app.schema import parse_schema
from sojourn.errors import BadSchema
from sojourn.spark.driver.native.schema import same_kind, schema_of


def test_what_spark_has_made_has_a_schema():
    made = (
        types.StructType()
        .add("odd name", types.StringType("UTF8_LCASE"))
        .add("a", types.VarcharType(3))
        .add("b", types.DecimalType(12, 3), nullable=False)
        .add("c", types.ArrayType(types.TimestampNTZType()))
        .add("d", types.MapType(types.DateType(), types.BinaryType()))
        .add("e", types.StructType().add("f", types.FloatType(), nullable=False))
    )
    assert schema_of(made) == parse_schema(
        "`odd name` string, a string, b decimal(12,3) not null, c array<timestamp_ntz>, "
        "d map<date, binary>, e struct<f: float not null>"
    )


@pytest.mark.parametrize(
    ("kind", "place", "problem"),
    [
        (types.NullType(), "schema.a", "void is not supported"),
        (types.ArrayType(types.VariantType()), "schema.a", "variant is not supported"),
        (types.StructType().add("b", types.NullType()), "schema.a.b", "void is not supported"),
        (
            types.MapType(types.ArrayType(types.LongType()), types.LongType()),
            "schema.a",
            "array<bigint> cannot be the key of a map",
        ),
    ],
)
def test_types_that_no_stream_can_have_are_refused(kind, place, problem):
    with pytest.raises(BadSchema, match=problem) as refused:
        schema_of(types.StructType().add("a", kind))
    assert refused.value.place == place


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("array<struct<b: int not null>>", "array<struct<b: int>>", True),
        ("map<int, struct<b: int>>", "map<int, struct<b: int not null>>", True),
        ("map<int, int>", "map<bigint, int>", False),
        ("struct<b: int>", "struct<c: int>", False),
        ("struct<b: int>", "struct<b: int, c: int>", False),
        ("struct<b: int>", "array<int>", False),
        ("decimal(3,1)", "decimal(3,2)", False),
    ],
)
def test_types_are_the_same_whatever_may_be_null(one, other, same):
    (mine,), (yours,) = (parse_schema(f"a {kind}").fields for kind in (one, other))
    assert same_kind(mine.type, yours.type) is same

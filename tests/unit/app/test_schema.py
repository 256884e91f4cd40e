import pickle

import pytest
from hypothesis import given

from sojourn.app.datatype import Array, Atom, Decimal, Field, Map, Struct
from sojourn.app.schema import Schema, parse_schema
from sojourn.errors import BadSchema
from unit.app.schemas import SCHEMAS


@given(SCHEMAS)
def test_what_is_written_down_is_read_back(schema):
    assert parse_schema(str(schema)) == schema


@given(SCHEMAS)
def test_schemas_travel_between_processes(schema):
    twin = pickle.loads(pickle.dumps(schema))
    assert twin == schema
    assert hash(twin) == hash(schema)


def test_the_types_that_spark_knows_are_known():
    schema = parse_schema(
        "word string, n bigint, parts array<struct<a: int>>, photo binary, "
        "price decimal(8, 2), sizes map<string, double>, at timestamp, local timestamp_ntz"
    )
    assert schema.fields == (
        Field("word", Atom("string")),
        Field("n", Atom("bigint")),
        Field("parts", Array(Struct((Field("a", Atom("int")),)))),
        Field("photo", Atom("binary")),
        Field("price", Decimal(8, 2)),
        Field("sizes", Map(Atom("string"), Atom("double"))),
        Field("at", Atom("timestamp")),
        Field("local", Atom("timestamp_ntz")),
    )
    assert schema.binaries == ("photo",)


@pytest.mark.parametrize(
    ("text", "ddl"),
    [
        ("A STRING", "A string"),
        ("a: int", "a int"),
        ("a long, b integer, c short, d byte", "a bigint, b int, c smallint, d tinyint"),
        ("a real, b dec, c numeric(5)", "a float, b decimal(10,0), c decimal(5,0)"),
        ("a timestamp_ltz NOT NULL", "a timestamp not null"),
        ("a struct<b int not null, c: string>", "a struct<b: int not null, c: string>"),
        ("a array<array<array<int>>>", "a array<array<array<int>>>"),
        ("`a b` int, `c``d` int, 1e int", "`a b` int, `c``d` int, `1e` int"),
        ("\n a  int ,\n b  int\n", "a int, b int"),
    ],
)
def test_other_ways_to_write_them_are_read(text, ddl):
    assert str(parse_schema(text)) == ddl


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "at the end of '': a column is missing"),
        ("a", "at the end of 'a': the type is missing"),
        ("a int,", "at the end of 'a int,': a column is missing"),
        ("word strng", "at character 6 of 'word strng': 'strng' is not a type"),
        ("a int b int", "at character 7 of 'a int b int': unexpected 'b'"),
        ("a int not", "expected 'null', found nothing"),
        ("a array int", "at character 9 of 'a array int': expected '<', found 'int'"),
        ("a array<int", "expected '>', found nothing"),
        ("a struct<>", "'>' is not a valid name"),
        ("a struct<b int, B int>", "there are two columns 'b'"),
        ("a int, A int", "there are two columns 'a'"),
        ("a map<array<int>, int>", "array<int> cannot be the key of a map"),
        ("a decimal(39,2)", "decimal(39,2) is not a valid type"),
        ("a decimal(3,4)", "decimal(3,4) is not a valid type"),
        ("a decimal(²)", "'²' is not a number of digits"),
        ("a decimal(9999)", "'9999' is not a number of digits"),
        ("a-b int", "expected a type, found '-'"),
        ("1 int", "'1' is not a valid name"),
        ("é int", "'é' is not a valid name"),
        ("`` int", "'' is not a valid column name"),
        ("`a\tb` int", "is not a valid column name"),
        ("`a int", "'`' is not a valid name"),
        ("a " + "array<" * 60 + "int" + ">" * 60, "it is nested deeper than 50 types"),
        (7, "7 is not a schema"),
        (None, "None is not a schema"),
    ],
)
def test_a_schema_that_spark_would_not_take_is_refused_with_the_place(text, problem):
    with pytest.raises(BadSchema) as caught:
        parse_schema(text, place="operators.split.emits")
    assert caught.value.place == "operators.split.emits"
    assert problem in caught.value.problem


def test_a_schema_made_by_hand_has_the_same_rules():
    with pytest.raises(BadSchema, match="there are no columns"):
        Schema(())
    with pytest.raises(BadSchema, match="two columns"):
        Schema((Field("a", Atom("int")), Field("A", Atom("int"))))

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sojourn as sj
from sojourn.app.output import output_of
from sojourn.errors import BadRecord
from unit.app.schemas import SCHEMAS, records


def checked(emits, *, outputs=()):
    app = sj.App("app")
    lines = app.source("lines", schema="line string")

    @app.operator(reads=lines, emits=emits)
    def split(line):  # noqa: ARG001 - the record
        yield from outputs

    return output_of(split)


@given(st.data())
def test_what_fits_gets_the_name_of_its_stream(data):
    schema = data.draw(SCHEMAS)
    record = data.draw(records(schema.fields))
    assert checked(schema)(record) == ("split", record)
    assert checked({"a": schema, "b": "x int"})(("a", record)) == ("a", record)


@pytest.mark.parametrize(
    ("output", "problem"),
    [
        ("word", "split: 'word' is not a record; make it a tuple: (value,)"),
        (("word",), "split: ('word',) has 1 values for 2 columns: word string, n int"),
        (("word", "1"), "split.n: '1' (of type str) does not fit int; convert it with int(…)"),
        ((7, 1), "split.word: 7 (of type int) does not fit string"),
    ],
)
def test_what_does_not_fit_names_operator_stream_and_value(output, problem):
    with pytest.raises(BadRecord) as caught:
        checked("word string, n int")(output)
    assert str(caught.value) == f"operators.split.emits.{problem}"


def test_nothing_is_a_value():
    assert checked("word string, n int")((None, None)) == ("split", (None, None))


@pytest.mark.parametrize("output", [7, None, ("c", (1,)), (1,), ([], (1,)), ("a", (1,), 2)])
def test_with_several_streams_each_output_names_its_own(output):
    with pytest.raises(BadRecord, match="does not name its stream; yield") as caught:
        checked({"a": "x int", "b": "x int"})(output)
    assert caught.value.place == "operators.split.emits"


def test_what_does_not_fit_names_the_stream_it_was_for():
    with pytest.raises(BadRecord, match=r"^operators\.split\.emits\.b\.x: 'y' \(of type str\)"):
        checked({"a": "x int", "b": "x int"})(("b", ("y",)))


def test_what_emits_nothing_has_no_output():
    app = sj.App("app")
    stored = app.operator(reads=app.source("lines", schema="line string"), name="a")(str.strip)
    with pytest.raises(BadRecord, match="'x' was emitted, but emits= is not given"):
        output_of(stored)("x")

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sojourn.errors import BadNumber, BadTopology
from sojourn.topology import check

PLACE = "operators.match"


def refusal(call, *values, **named):
    with pytest.raises(BadTopology) as caught:
        call(*values, **named)
    return caught.value


@pytest.mark.parametrize("value", ["match", "match-2", "a.b", "größe", "two words", "フレーム"])
def test_a_name_gives_its_place(value):
    assert check.name("operators", value) == f"operators.{value}"


@pytest.mark.parametrize("value", [None, 1, 1.5, True, "", "  ", ["a"], b"a"], ids=repr)
def test_what_is_not_text_is_no_name(value):
    error = refusal(check.name, "operators", value)
    assert type(error) is BadTopology
    assert str(error) == (
        f"operators: {value!r} is not a name; write text, in quotes if necessary"
    )


@pytest.mark.parametrize(
    "value", ["a,b", "a=b", "a:b", " a", "a ", "a\nb", "a\tb", "a\0", "\x1b[1m", "\ud800"]
)
def test_a_name_that_cannot_be_written_in_an_allocation_is_refused(value):
    error = refusal(check.name, "operators", value)
    assert type(error) is BadTopology
    assert error.place == f"operators.{value}"
    assert error.problem.startswith(repr(value))
    assert "name=5,other=3" in str(error)
    assert str(error).isprintable()


@pytest.mark.parametrize("value", [0, 0.0, 1, 1e-18, 1e18, 10**18, -0.0])
def test_0_and_numbers_of_a_sane_size_are_fine(value):
    check.number(PLACE, value)


@pytest.mark.parametrize("value", ["1", None, True, [1], 1j], ids=repr)
def test_what_is_not_a_number_is_refused(value):
    error = refusal(check.number, PLACE, value)
    assert type(error) is BadTopology
    assert str(error) == f"{PLACE}: {value!r} is not a number; write 0 or more"


@pytest.mark.parametrize(
    "value",
    [-1, -5e-324, float("inf"), float("-inf"), float("nan"), -(10**400)],
    ids=check.shown,
)
def test_a_number_that_is_no_quantity_is_refused(value):
    error = refusal(check.number, PLACE, value)
    assert type(error) is BadNumber
    assert error.problem.startswith(check.shown(value))
    assert str(error).endswith("is negative, NaN or infinite; write 0 or more")


@pytest.mark.parametrize(
    "value", [5e-324, 9e-19, 1.1e18, 1.7e308, 10**400, 10**5000], ids=check.shown
)
def test_a_number_beyond_all_measure_is_refused_as_a_slip_of_the_unit(value):
    error = refusal(check.number, PLACE, value)
    assert type(error) is BadNumber
    assert error.problem.startswith(check.shown(value))
    assert str(error).endswith("write 0, or 1e-18 to 1e+18; check the unit")


@given(value=st.integers() | st.floats())
def test_a_number_is_fine_or_refused(value):
    sane = value == 0 or 1e-18 <= value <= 1e18
    try:
        check.number(PLACE, value)
    except BadNumber:
        assert not sane
    else:
        assert sane


def test_numbers_by_name_are_fine():
    check.numbers(PLACE, {"a": 1, "b": 0.5}, example="{a: 1}")
    check.numbers(PLACE, {}, example="{a: 1}")


def test_each_of_several_numbers_is_checked_in_its_own_place():
    error = refusal(check.numbers, PLACE, {"a": 1, "b": -1}, example="{a: 1}")
    assert (type(error), error.place) == (BadNumber, f"{PLACE}.b")


def test_each_of_several_names_is_checked():
    error = refusal(check.numbers, PLACE, {"a": 1, 2: 1}, example="{a: 1}")
    assert (type(error), error.place) == (BadTopology, PLACE)
    assert error.problem == "2 is not a name"


@pytest.mark.parametrize("values", [None, 1, "a", ["a"]], ids=repr)
def test_numbers_without_names_are_refused_with_an_example(values):
    error = refusal(check.numbers, PLACE, values, example="{a: 1}")
    assert type(error) is BadTopology
    assert error.way_out == "write {a: 1}"
    assert error.problem.startswith(repr(values))


@pytest.mark.parametrize("value", [1, 2, 10**9])
def test_a_whole_number_from_1_on_is_a_count(value):
    check.count(PLACE, value)


@pytest.mark.parametrize(
    ("value", "kind", "way_out"),
    [
        (0, BadNumber, "write 1 or more"),
        (-3, BadNumber, "write 1 or more"),
        (10**9 + 1, BadNumber, "write a smaller number"),
        (10**5000, BadNumber, "write a smaller number"),
        (1.0, BadTopology, "write 1 or more"),
        (True, BadTopology, "write 1 or more"),
        ("1", BadTopology, "write 1 or more"),
        (None, BadTopology, "write 1 or more"),
    ],
    ids=["0", "-3", "billions", "digits", "float", "bool", "text", "none"],
)
def test_what_is_no_count_is_refused(value, kind, way_out):
    error = refusal(check.count, PLACE, value)
    assert type(error) is kind
    assert (error.place, error.way_out) == (PLACE, way_out)
    assert error.problem.startswith(check.shown(value))


def test_a_choice_is_one_of_the_choices():
    check.choice(PLACE, "each", ("each", "one_of"))


@pytest.mark.parametrize("value", ["Each", "", None, 1, ["each"], float("nan")], ids=repr)
def test_another_choice_is_refused_with_all_there_are(value):
    error = refusal(check.choice, PLACE, value, ("each", "one_of"))
    assert type(error) is BadTopology
    assert str(error) == f"{PLACE}: {value!r} is not a valid value; write each or one_of"


def test_distinct_names_are_fine():
    check.distinct("operators", ["a", "b", "c"])


def test_a_name_used_twice_is_refused():
    error = refusal(check.distinct, "operators", iter(["a", "b", "a", "a"]))
    assert type(error) is BadTopology
    assert str(error) == "operators.a: the name occurs 3 times; rename all but one"


def test_known_operators_are_fine():
    check.known(PLACE, ["a"], {"a": None, "b": None})


def test_an_unknown_operator_is_refused_with_those_there_are():
    error = refusal(check.known, PLACE, ["a", "c"], {"a": None, "b": None})
    assert type(error) is BadTopology
    assert str(error) == f"{PLACE}.c: there is no operator 'c'; add it, or write one of a, b"


def test_of_many_operators_only_some_are_named():
    error = refusal(check.known, PLACE, ["x"], {f"o{i}": None for i in range(5000)})
    assert len(str(error)) < 300

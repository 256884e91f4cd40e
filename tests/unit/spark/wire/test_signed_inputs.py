"""Headers that say which record entered a writer: only those of this application count."""

from hypothesis import given
from hypothesis import strategies as st

from sojourn.spark.wire.headers import INPUT
from sojourn.spark.wire.repetitions import Input
from sojourn.spark.wire.signed_inputs import LONGEST, SignedInputs

TOPICS = frozenset(["lines@m", "prices@m"])
SIGNED = SignedInputs(b"key", TOPICS)
ENTERED = Input(writer="split", topic="lines@m", partition=0, offset=7, floor=5)


def header(value):
    return {"key": INPUT, "value": value}


def value_of(entered, signed=SIGNED):
    ((_, value),) = signed.header(entered)
    return value


@given(
    topic=st.from_regex(r"[A-Za-z0-9._-]{1,20}(@[A-Za-z0-9_-]{1,20})?", fullmatch=True),
    writer=st.from_regex(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,20}", fullmatch=True),
    numbers=st.lists(st.integers(0, 2**63 - 1), min_size=3, max_size=3),
)
def test_an_input_is_read_as_it_was_written(topic, writer, numbers):
    partition, floor, offset = sorted(numbers)
    entered = Input(writer=writer, topic=topic, partition=partition, offset=offset, floor=floor)
    signed = SignedInputs(b"key", frozenset([topic]))
    headers = [{"key": "other", "value": b"x"}, header(value_of(entered, signed))]
    assert signed.inputs(headers) == (entered,)


def test_several_are_in_the_order_of_their_writers():
    second = Input(writer="query", topic="prices@m", partition=1, offset=9, floor=0)
    assert SIGNED.inputs([header(value_of(each)) for each in (ENTERED, second)]) == (
        ENTERED,
        second,
    )


@given(st.none() | st.binary(max_size=60) | st.from_regex(rb"a [^ ]*/0/[0-9]+ 0 [0-9a-f]{32}"))
def test_what_others_write_counts_as_none(value):
    assert SIGNED.inputs([header(value)]) == ()


def test_a_header_with_another_key_or_other_numbers_counts_as_none():
    assert SIGNED.inputs([header(value_of(ENTERED, SignedInputs(b"other", TOPICS)))]) == ()
    value = value_of(ENTERED)
    for changed in (
        value.replace(b"/0/7 5 ", b"/0/4611686018427387904 4611686018427387904 "),
        value.replace(b"split", b"model"),
        value.replace(b"lines@m", b"prices@m"),
        value[:-1],
        value + b"\n",
        value.rpartition(b" ")[0],
        value.upper(),
    ):
        assert changed != value
        assert SIGNED.inputs([header(changed)]) == ()


def test_inputs_of_topics_that_are_not_ours_count_as_none():
    """Whoever copies records between topics mixes offsets up."""
    value = value_of(ENTERED, SignedInputs(b"key", frozenset(["lines@before"])))
    assert SignedInputs(b"key", frozenset(["lines@now"])).inputs([header(value)]) == ()


def test_a_floor_above_the_record_itself_counts_as_none():
    entered = Input(writer="split", topic="lines@m", partition=0, offset=7, floor=8)
    assert SIGNED.inputs([header(value_of(entered))]) == ()


def test_without_a_key_nothing_is_written_or_believed():
    without = SignedInputs(b"", TOPICS)
    assert without.header(ENTERED) == []
    assert without.inputs([header(value_of(ENTERED))]) == ()


def test_the_key_is_not_shown():
    assert "key" not in repr(SIGNED)


def test_no_header_is_longer_than_the_room_that_is_kept_for_it():
    largest = 2**63 - 1
    topic = f"{'t' * 249}@{'m' * 17}"
    entered = Input(
        writer="w" * 100, topic=topic, partition=2**31 - 1, offset=largest, floor=largest
    )
    assert len(value_of(entered)) <= LONGEST


def test_a_record_is_named_if_a_producer_has_named_it_or_its_root():
    headers = [header(value_of(ENTERED))]
    ours = SIGNED.provenance("lines@m/0/7.split.0", "lines@m/0/7", headers, given=True)
    assert (ours.inputs, ours.named) == ((ENTERED,), False)
    of_producer = SIGNED.provenance("order-1.split.0", "order-1", headers, given=True)
    assert (of_producer.inputs, of_producer.named) == ((ENTERED,), True)
    outside = SIGNED.provenance("order-1", "order-1", [], given=True)
    assert (outside.inputs, outside.named) == ((), True)
    assert SIGNED.provenance("lines@m/0/7", "lines@m/0/7", [], given=False) is None

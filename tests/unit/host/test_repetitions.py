"""What is new among the records of a stream, and what comes again."""

from collections import defaultdict
from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sojourn.host.batch.repetitions import Input, Memory, Provenance, Repetitions
from sojourn.spark.query.headers import INPUT, input_header, input_of
from unit.host.spark_stand_in import REMINDERS, World, called, expected
from unit.host.test_part_whatever_happens import EVENTS

LINES = "lines@m"
HISTORIES = st.lists(
    st.tuples(st.sampled_from(EVENTS), st.integers(0, 11), st.integers(0, 60)), max_size=40
)


def told(window=2, memory=None):
    inputs = {LINES, "prices@m", f"{REMINDERS}@m"}
    return Repetitions(window, inputs, memory or Memory())


def arrived(offset, floor, *, partition=0, topic=LINES, name=None, root=None):
    """Return what came of a record at *offset*; that has its place as its id, if no *root*."""
    entered = Input(topic=topic, partition=partition, offset=offset, floor=floor)
    root = root or entered.place
    return Provenance(identity=name or f"{root}.split.0", root=root, entered=entered)


def named(identity):
    return Provenance(identity=identity)


@settings(max_examples=100)
@given(history=HISTORIES, seed=st.integers(0, 2**32), partitions=st.integers(1, 4))
def test_of_all_that_a_part_writes_everything_passes_once(history, seed, partitions):
    """The part is the real one; what it writes may fail, and be repeated, at any step."""
    world, random = World(), Random(seed)
    for number in range(6):
        world.produce(number)
    for event, number, then in history:
        world.happens(getattr(world, event), number)
        world.run(then, random)
    world.settle(random)
    tasks, passed = defaultdict(told), []
    for leaving, floor in world.sink:
        (topic, partition), offset = leaving.root
        result = arrived(
            offset, floor, topic=f"{topic}@m", partition=partition, name=called(leaving)
        )
        if tasks[partition % partitions].is_new(result):
            passed.append(called(leaving))
    assert sorted(passed) == expected(world.roots())[1]


def test_a_root_may_be_open_for_as_long_as_it_likes():
    stream = told(window=2)
    assert stream.is_new(arrived(5, 5))
    for offset in range(6, 1000):
        assert stream.is_new(arrived(offset, 5))
    assert not stream.is_new(arrived(5, 5))
    assert stream.is_new(arrived(5, 5, name="another result of it"))
    assert stream.is_new(arrived(1000, 1000))
    assert not stream.is_new(arrived(5, 5)), "the batch is committed; a task of before writes"
    assert not stream.is_new(arrived(5, 5, name="another result of it"))


def test_ids_are_kept_from_the_floor_on_and_no_others():
    stream = told()
    for offset in range(1000):
        stream.is_new(arrived(offset, max(0, offset - 10)))
        stream.is_new(arrived(offset, 0, partition=1))
    (first, second) = stream.memory.partitions
    assert sorted(first.ids.values()) == list(range(989, 1000))
    assert len(second.ids) == 1000
    assert not stream.memory.recent.ids


def test_floors_are_those_of_each_partition_and_topic():
    stream = told()
    assert stream.is_new(arrived(900, 900))
    assert stream.is_new(arrived(3, 3, partition=1))
    assert stream.is_new(arrived(3, 3, topic="prices@m"))


def test_what_nobody_says_the_input_of_is_compared_with_the_last_records():
    stream = told(window=2)
    came = [stream.is_new(named(identity)) for identity in ("a", "b", "a", "c", "b", "a")]
    assert came == [True, True, False, True, False, True]


def test_inputs_of_topics_that_are_not_ours_are_not_believed():
    """Whoever copies records mixes them up: one that is below a floor may be new."""
    stream = told(window=2)
    assert stream.is_new(arrived(9, 9, topic="lines@before"))
    assert stream.is_new(arrived(3, 3, topic="lines@before"))
    assert not stream.is_new(arrived(9, 9, topic="lines@before"))
    assert stream.memory.partitions == []


def test_ids_that_producers_gave_are_compared_with_the_last_records_too():
    """A producer that sends a record again gives it the same id, and another offset."""
    stream = told(window=3)
    assert stream.is_new(arrived(1, 1, root="order-1"))
    assert stream.is_new(arrived(2, 2, root="order-2"))
    assert not stream.is_new(arrived(3, 3, root="order-1"))
    for offset in range(4, 10):
        assert stream.is_new(arrived(offset, 3))
    assert not stream.is_new(arrived(3, 3, root="order-1")), "it was no news the first time"
    assert stream.is_new(arrived(10, 10, root="order-1")), "the window is over"


def test_the_window_counts_all_records_and_forgets():
    stream = told(window=100)
    stream.is_new(named("a"))
    for offset in range(99):
        assert stream.is_new(arrived(offset, offset))
    assert not stream.is_new(named("a"))
    for offset in range(99, 200):
        assert stream.is_new(arrived(offset, offset))
    assert stream.memory.recent.ids == {}
    assert stream.is_new(named("a"))


def test_a_record_without_an_id_is_new_and_takes_no_room():
    stream = told()
    assert all(stream.is_new(Provenance(identity=f"in/0/{n}", unnamed=True)) for n in range(9))
    assert stream.memory.recent.ids == {}


def test_a_memory_goes_on_from_where_it_was_saved():
    stream = told()
    stream.is_new(arrived(5, 5))
    stream.is_new(arrived(7, 5))
    stream.is_new(named("a"))
    saved = msgspec.msgpack.decode(msgspec.msgpack.encode(stream.memory), type=Memory)
    stream = told(memory=saved)
    assert not stream.is_new(arrived(5, 5))
    assert not stream.is_new(arrived(4, 4))
    assert not stream.is_new(named("a"))
    assert stream.is_new(arrived(6, 5))
    assert Repetitions(2, {"lines@anew"}, saved).memory.partitions == []


@given(
    topic=st.from_regex(r"[A-Za-z0-9._-]{1,20}(@[A-Za-z0-9_-]{1,20})?", fullmatch=True),
    numbers=st.lists(st.integers(0, 2**63 - 1), min_size=3, max_size=3),
)
def test_an_input_is_read_as_it_was_written(topic, numbers):
    partition, floor, offset = sorted(numbers)
    entered = Input(topic=topic, partition=partition, offset=offset, floor=floor)
    name, value = input_header(entered)
    assert input_of([{"key": "other", "value": b"x"}, {"key": name, "value": value}]) == entered


@given(st.none() | st.binary(max_size=40) | st.from_regex(rb"[^ ]*/[0-9]+/[0-9]+ [0-9]+"))
def test_what_a_stranger_wrote_is_an_input_or_none(value):
    entered = input_of([{"key": INPUT, "value": value}])
    assert entered is None or entered.floor <= entered.offset


@pytest.mark.parametrize(
    "value",
    [
        *(b"", b"lines@m/0/7", b"lines@m/0/7 ", b"lines@m/0/7 8", b"lines@m/0/07 7", b"/0/7 5"),
        *(b"lines@m/0/7 5\n", b"lines@m/-1/7 5", b"a/b/0/7 5", "lines@m/0/\u0667 5".encode()),
        *(b"lines@m/0/" + b"9" * 20 + b" 5", b"\xff\xfe"),
    ],
)
def test_what_cannot_be_is_taken_as_if_it_were_not_there(value):
    assert input_of([{"key": INPUT, "value": value}]) is None

"""What is new among the records of a stream, and what comes again."""

from collections import defaultdict
from random import Random

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from sojourn.spark.wire.repetitions import Input, Memory, Provenance, Repetitions
from unit.spark.host.spark_stand_in import REMINDERS, World, called, expected
from unit.spark.host.test_part_whatever_happens import EVENTS

LINES = "lines@m"
HISTORIES = st.lists(
    st.tuples(st.sampled_from(EVENTS), st.integers(0, 11), st.integers(0, 60)), max_size=40
)


def told(window=2, memory=None):
    return Repetitions(window, memory or Memory(), {LINES, "prices@m", f"{REMINDERS}@m"})


def entered_at(offset, floor, *, partition=0, topic=LINES, writer="split"):
    return Input(writer=writer, topic=topic, partition=partition, offset=offset, floor=floor)


def arrived(offset, floor, *, name=None, root=None, **place):
    """Return what came of a record at *offset*, named by a producer if it has a *root*."""
    entered = entered_at(offset, floor, **place)
    identity = name or f"{root or entered.position}.split.0"
    return Provenance(identity=identity, inputs=(entered,), named=root is not None)


def named(identity):
    return Provenance(identity=identity, named=True)


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
    assert not stream.memory.named.ids


def test_floors_are_those_of_each_partition_and_topic():
    stream = told()
    assert stream.is_new(arrived(900, 900))
    assert stream.is_new(arrived(3, 3, partition=1))
    assert stream.is_new(arrived(3, 3, topic="prices@m"))


def test_what_nobody_says_the_input_of_is_compared_with_the_last_records():
    stream = told(window=2)
    came = [stream.is_new(named(identity)) for identity in ("a", "b", "a", "c", "b", "a")]
    assert came == [True, True, False, True, False, True]


def test_two_writers_of_a_stream_have_floors_of_their_own():
    """Both read the same topic; the slow one is at an offset that the quick one has left."""
    stream = told()
    for offset in range(1000):
        assert stream.is_new(arrived(offset, offset // 100 * 100, writer="quick"))
    for offset in range(100):
        assert stream.is_new(arrived(offset, 0, writer="slow", name=f"{offset}.slow.0"))
    assert not stream.is_new(arrived(7, 0, writer="slow", name="7.slow.0"))
    assert not stream.is_new(arrived(7, 0, writer="quick"))


def test_what_a_query_repeats_is_known_apart_from_what_the_part_before_it_repeats():
    """A query of Spark's own passes on all that it reads, at offsets of their own."""
    stream = told()

    def through(at, offset, floor):
        inputs = (
            entered_at(offset, floor, topic="lines@m", writer="split"),
            entered_at(at, max(0, at - 10), topic="prices@m", writer="query"),
        )
        return stream.is_new(Provenance(identity=f"{offset}.split.0.query.0", inputs=inputs))

    assert [through(at, at, 0) for at in range(30)] == [True] * 30
    assert [through(30 + at, at, 0) for at in range(30)] == [False] * 30, "split repeats"
    assert [through(at, at, 0) for at in range(10, 30)] == [False] * 20, "so does the query"
    assert [through(30 + at, at, 0) for at in range(5)] == [False] * 5, "what split repeated"
    assert [through(60 + at, 30 + at, 30) for at in range(30)] == [True] * 30
    assert not through(90, 3, 3), "split had written that before it committed"


def test_an_id_that_is_written_in_advance_displaces_nothing():
    """Ids can be guessed: a position, an operator and a number."""
    stream = told(window=1000)
    assert stream.is_new(named("lines@m/0/7.split.0"))
    copied = arrived(3, 0, name="lines@m/0/7.split.0")
    assert stream.is_new(copied), "a header of another record, on a record with that id"
    assert stream.is_new(arrived(7, 0))
    assert not stream.is_new(arrived(7, 0))


def test_two_records_with_one_id_from_different_offsets_are_two():
    stream = told()
    assert stream.is_new(arrived(3, 0, name="x"))
    assert stream.is_new(arrived(4, 0, name="x"))
    assert not stream.is_new(arrived(3, 0, name="x"))
    assert not stream.is_new(arrived(4, 0, name="x"))


def test_what_a_topic_had_that_was_recreated_is_forgotten():
    stream = told(window=2)
    stream.is_new(arrived(9, 9, topic="lines@before"))
    assert told(memory=stream.memory).memory.partitions == []


def test_a_copy_of_the_memory_stays_as_it_was():
    """The cut of a batch must not know of records that come after it."""
    stream = told(window=10)
    records = [arrived(5, 5), named("a"), arrived(6, 5, root="order-1")]
    assert all(stream.is_new(record) for record in records)
    copied = stream.memory.copied()
    later = [arrived(7, 5), named("b"), arrived(8, 5, root="order-2")]
    assert all(stream.is_new(record) for record in later)
    resumed = told(window=10, memory=copied)
    assert not any(resumed.is_new(record) for record in records)
    assert all(resumed.is_new(record) for record in later)


def test_ids_that_producers_gave_are_compared_with_the_last_of_them():
    """A producer that sends a record again gives it the same id, and another offset."""
    stream = told(window=3)
    assert stream.is_new(arrived(1, 1, root="order-1"))
    assert stream.is_new(arrived(2, 2, root="order-2"))
    assert not stream.is_new(arrived(3, 3, root="order-1"))
    for offset in range(4, 10):
        assert stream.is_new(arrived(offset, 3))
    assert not stream.is_new(arrived(10, 3, root="order-1")), "others do not count"
    for offset in range(11, 14):
        assert stream.is_new(arrived(offset, 3, root=f"order-{offset}"))
    assert stream.is_new(arrived(14, 10, root="order-1")), "the window is over"


def test_the_window_forgets_what_is_beyond_it():
    stream = told(window=100)
    assert all(stream.is_new(named(f"id-{number}")) for number in range(1000))
    assert len(stream.memory.outside.ids) == 100


def test_a_sink_without_a_memory_knows_the_ids_that_it_holds():
    stream = told(window=3, memory=Memory.of(["a", "order-1.split.0"]))
    assert not stream.is_new(named("a"))
    assert not stream.is_new(arrived(4, 0, root="order-1"))


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

"""Bytes by stream: nothing is counted twice or lost, however records share frames."""

from hypothesis import given
from hypothesis import strategies as st

from sojourn.spark.host.nodes.traffic import Traffic
from sojourn.spark.wire.processor import OutputRecord, Result
from sojourn.spark.wire.record import Record

STREAMS = st.sampled_from(["a", "b", "c"])
RECORDS = st.builds(lambda s, n: Record("x/0/1", bytes(n), s), STREAMS, st.integers(0, 9))
OUTPUTS = st.builds(lambda s, n: OutputRecord(s, bytes(n)), STREAMS, st.integers(0, 9))
SIZES = st.integers(1, 10_000)


@given(st.lists(st.tuples(st.lists(RECORDS, min_size=1, max_size=5), SIZES)))
def test_every_byte_to_a_node_counts_once(frames):
    traffic = Traffic()
    for records, size_bytes in frames:
        traffic.gave(records, size_bytes)
    assert sum(traffic.to.values()) == sum(size_bytes for _, size_bytes in frames)
    assert traffic.to.keys() == {record.stream for records, _ in frames for record in records}
    assert not traffic.back


@given(st.lists(st.tuples(st.lists(st.builds(Result, st.lists(OUTPUTS))), SIZES)))
def test_every_byte_back_counts_once(frames):
    traffic = Traffic()
    for results, size_bytes in frames:
        traffic.got(results, size_bytes)
    assert sum(traffic.back.values()) == sum(size_bytes for _, size_bytes in frames)
    assert not traffic.to


def test_streams_that_share_a_frame_have_their_shares():
    traffic = Traffic()
    traffic.gave([Record("1", bytes(899), "big"), Record("2", bytes(99), "small")], 2000)
    assert traffic.to == {"big": 1800, "small": 200}


def test_a_rate_is_that_of_the_last_seconds():
    traffic = Traffic()
    assert traffic.per_s == (0.0, 0.0)
    for second in range(100):
        traffic.mark(float(second))
        if second < 97:
            traffic.gave([Record("1", b"", "a")], 500)
    assert traffic.per_s == (3 * 500 / 5, 0.0)

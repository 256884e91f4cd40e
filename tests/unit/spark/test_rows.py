"""What leaves a part, as rows for Kafka."""

from sojourn.host.batch.cut import Root
from sojourn.host.batch.relay_messages import Results
from sojourn.host.process.messages import Record
from sojourn.spark.query.headers import Input, input_of
from sojourn.spark.query.rows import Route, Rows

ROUTE = Route(
    part="split",
    operators=("split",),
    reads={"lines": "lines"},
    writes={"split": "shop.split", "other": "shop.other"},
    dead_letters="shop.dead-letters",
    marks={"lines": "m"},
    partitions={"shop.split": 2},
)


def left(stream):
    record = Record("lines@m/3/7.split.0", b"{}", stream, root="lines@m/3/7")
    (row,) = Rows(ROUTE).left(Results([(record, Root(("lines", 3), 7), 5)], []))
    return row


def test_what_comes_of_a_partition_goes_to_one_of_those_that_a_deduplicating_sink_reads():
    assert (left("split")["topic"], left("split")["partition"]) == ("shop.split", 1)


def test_kafka_chooses_the_partition_of_all_else():
    assert (left("other")["topic"], left("other")["partition"]) == ("shop.other", None)


def test_it_says_where_it_entered_and_below_which_offset_all_has_left():
    entered = Input(topic="lines@m", partition=3, offset=7, floor=5)
    assert input_of(left("split")["headers"]) == entered

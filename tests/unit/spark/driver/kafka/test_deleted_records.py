import pytest

from sojourn.errors import BadInput
from sojourn.spark.driver.kafka.deleted_records import lost_records, refuse_lost

EARLIEST = {"orders": {0: 250, 1: 40}, "words": {0: 0}}


def test_what_was_read_or_is_still_there_is_not_lost():
    assert lost_records([{"orders": {0: 250, 1: 41}}, {"words": {0: 7}}], EARLIEST) == []
    refuse_lost([])


def test_the_query_that_is_furthest_behind_tells_what_is_lost():
    positions = [{"orders": {0: 200, 1: 40}}, {"orders": {0: 100}}, {"words": {0: 0}}]
    (lost,) = lost_records(positions, EARLIEST)
    assert (str(lost), lost.end - lost.first) == ("orders[0] offsets 100 to 249", 150)


def test_the_error_names_partitions_offsets_and_the_way_out():
    lost = lost_records([{"orders": {0: 100, 1: 30}}], EARLIEST)
    with pytest.raises(BadInput, match="--skip-lost") as raised:
        refuse_lost(lost)
    told = "160 records (orders[0] offsets 100 to 249, orders[1] offsets 30 to 39)"
    assert told in str(raised.value)

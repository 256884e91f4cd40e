"""What a batch leaves to the next comes back whole, also from files of an earlier version."""

import msgspec

from sojourn.host.messages import Hello, Record
from sojourn.spark.carry_over import CarryOver
from sojourn.spark.headers import lineage_of


def test_all_of_a_record_comes_back(tmp_path):
    told = [("sojourn-id", b"it"), ("other", b"\xff"), ("sojourn-column-photo", b"\x00")]
    lineage = lineage_of(
        told, topic="lines", partition=3, offset=7, timestamp_s=1.5, key=b"\xff"
    )
    record = Record(1, lineage.place, b"{}", "lines", room=99, name=lineage.identity)
    files = CarryOver(tmp_path)
    files.save(Hello("q", 3, 4), [(lineage, record)])
    assert files.load(Hello("q", 3, 5)) == [(lineage, record)]


def test_and_of_one_that_an_earlier_version_left(tmp_path):
    lineage = {
        "identity": "lines/3/7", "root": "lines/3/7", "birth_s": 1.5, "written_s": 1.5,
        "blobs": {}, "traced": 1,
    }  # fmt: skip
    record = [1, "lines/3/7", b"{}", "lines", {}, None, 1.5, False, "lines/3/7", 1.5, 1, 3, 7]
    tmp_path.joinpath("3-4").write_bytes(msgspec.msgpack.encode([(lineage, record)]))
    ((left, again),) = CarryOver(tmp_path).load(Hello("q", 3, 5))
    assert (left.identity, left.key, left.others) == ("lines/3/7", None, ())
    assert (again.identity, again.offset, again.room) == ("lines/3/7", 7, 0)

"""The latest broadcast records, for the next host."""

from sojourn.host.latest_file import LatestFile
from sojourn.host.messages import Record


def rule(number, key, payload=b"x"):
    return Record(number, f"id-{number}", payload, "rules", key=key)


def kept(path, *records, **fields):
    """Return the file after *records* were kept."""
    file = LatestFile(path, **fields)
    latest = file.read()
    for place, record in enumerate(records, 1):
        latest.keep(place, record)
        file.add(record, latest)
    return file


def numbers(file):
    return [record.number for record in file.read().records]


def test_the_next_host_has_the_latest_of_each_key_in_order(tmp_path):
    file = kept(tmp_path / "latest", rule(1, "a"), rule(2, "b"), rule(3, "a"))
    assert numbers(file) == [2, 3]
    assert numbers(kept(tmp_path / "latest", rule(4, "b"))) == [3, 4]


def test_without_a_file_there_is_nothing(tmp_path):
    assert numbers(LatestFile(tmp_path / "latest")) == []
    assert not list(tmp_path.iterdir())


def test_a_record_that_was_half_written_is_left_out(tmp_path):
    kept(tmp_path / "latest", rule(1, "a"), rule(2, "b"))
    whole = (tmp_path / "latest").read_bytes()
    (tmp_path / "latest").write_bytes(whole[:-3])
    assert numbers(kept(tmp_path / "latest", rule(3, "c"))) == [1, 3]


def test_what_comes_after_nonsense_is_left_out(tmp_path):
    kept(tmp_path / "latest", rule(1, "a"))
    with (tmp_path / "latest").open("ab") as file:
        file.write(b"\0\0\0\2no")
    assert numbers(kept(tmp_path / "latest")) == [1]


def test_it_does_not_grow_for_ever(tmp_path):
    records = [rule(number, "a", b"x" * 100) for number in range(200)]
    kept(tmp_path / "latest", *records, most_bytes=1000)
    assert (tmp_path / "latest").stat().st_size < 1200
    assert numbers(LatestFile(tmp_path / "latest")) == [199]

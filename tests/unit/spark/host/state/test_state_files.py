"""States on a real disk: layers, the store, and what is left of a crash."""

import pytest

from sojourn.errors import BadFile
from sojourn.files.durable_file import write_checked
from sojourn.spark.host.batch.cut import CutId
from sojourn.spark.host.state.keyed_state import KeyedState, MergeState
from sojourn.spark.host.state.state_files import StateFiles

LONG = "k" * 2000


@pytest.fixture
def files(tmp_path):
    files = StateFiles(tmp_path / "state")
    yield files
    files.close()


def merge(files, *cuts):
    files.merge(MergeState(cuts[-1][0].batch, cuts))


def test_nothing_is_there_at_the_beginning(files):
    assert files.merged() == -1
    assert files.look_up("count", "a") == b""
    assert list(files.states("count")) == []


def test_what_is_merged_is_found_by_operator_and_key(files):
    states = {"a": b"1", "": b"2", "ä\ud800": b"3", LONG: b"4"}
    merge(files, (CutId(0, 1), {"count": states, "counts": {"a": b"5"}}))
    assert {key: files.look_up("count", key) for key in states} == states
    assert dict(files.states("count")) == states
    assert dict(files.states("counts")) == {"a": b"5"}
    assert (files.look_up("counts", LONG), files.look_up("coun", "t")) == (b"", b"")
    assert files.merged() == 0


def test_later_changes_replace_and_remove(files):
    merge(
        files,
        (CutId(0, 1), {"count": {"a": b"1", "b": b"1", LONG: b"1"}}),
        (CutId(1, 1), {"count": {"a": b"2", "b": b"", LONG: b""}}),
    )
    assert dict(files.states("count")) == {"a": b"2"}


def test_what_is_there_already_is_not_merged_again(files):
    merge(files, (CutId(0, 1), {"count": {"a": b"1"}}), (CutId(1, 1), {"count": {"a": b"2"}}))
    merge(files, (CutId(0, 1), {"count": {"a": b"1"}}))
    assert files.look_up("count", "a") == b"2"
    assert files.merged() == 1


def test_what_is_not_merged_yet_comes_before_the_store(files):
    merge(files, (CutId(0, 1), {"count": {"a": b"1", "b": b"1", "c": b"1"}}))
    files.write_delta(CutId(0, 1), {"count": {"c": b"0"}})  # merged, but not removed yet
    files.write_delta(CutId(1, 2), {"count": {"a": b"2", "d": b"2"}})
    files.write_delta(CutId(2, 2), {"count": {"b": b"", "d": b"3", "e": b""}})
    cuts = [CutId(0, 1), CutId(1, 2), CutId(2, 2)]
    assert dict(files.states("count", cuts)) == {"a": b"2", "c": b"1", "d": b"3"}
    files.close()
    other = StateFiles(files.folder, readonly=True)
    assert dict(other.states("count", cuts)) == {"a": b"2", "c": b"1", "d": b"3"}
    other.close()
    with pytest.raises(BadFile, match="3-2: is missing"):
        list(files.states("count", [*cuts, CutId(3, 2)]))


def test_states_are_those_of_one_moment_while_others_are_merged(files):
    states = {f"k{number}": b"0" for number in range(100)}
    merge(files, (CutId(0, 1), {"count": states}))
    files.write_delta(CutId(1, 1), {"count": {"k7": b"1"}})
    reading = files.states("count", [CutId(1, 1)])
    found = [next(reading)]
    merge(files, (CutId(2, 1), {"count": dict.fromkeys(states, b"2")}))
    found += reading
    assert dict(found) == states | {"k7": b"1"}
    # a file that is gone by now is merged
    assert set(dict(files.states("count", [CutId(1, 1)])).values()) == {b"2"}


def test_a_reader_of_nothing_makes_nothing(tmp_path):
    files = StateFiles(tmp_path / "state", readonly=True)
    assert (files.merged(), files.look_up("count", "a")) == (-1, b"")
    assert list(files.states("count")) == []
    assert not (tmp_path / "state").exists()
    StateFiles(tmp_path / "state").write_delta(CutId(0, 1), {"count": {"a": b"1", "b": b""}})
    assert list(files.states("count", [CutId(0, 1)])) == [("a", b"1")]


def test_files_of_what_is_merged_are_removed(files):
    for batch in range(3):
        files.write_delta(CutId(batch, 1), {"count": {"a": b"%d" % batch}})
    merge(files, (CutId(1, 1), files.read_delta(CutId(1, 1))))
    with pytest.raises(FileNotFoundError):
        files.read_delta(CutId(0, 1))
    assert files.read_delta(CutId(2, 1)) == {"count": {"a": b"2"}}


def test_it_is_all_there_after_the_store_is_opened_again(files):
    merge(files, (CutId(4, 2), {"count": {"a": b"1"}}))
    files.close()
    again = StateFiles(files.folder)
    assert (again.merged(), again.look_up("count", "a")) == (4, b"1")
    again.close()


def test_a_file_that_cannot_be_read_is_named(files):
    files.write_delta(CutId(0, 1), {"count": {"a": b"1"}})
    write_checked(files.folder / "changed" / "0-1", b"\x93")
    with pytest.raises(BadFile, match="0-1: cannot be read"):
        files.read_delta(CutId(0, 1))


def test_a_cut_that_another_host_is_merging_is_restored(files):
    """The file of the first cut goes between the look at the store and that at the file."""
    files.write_delta(CutId(1, 1), {"count": {"a": b"2"}})
    merge(files, (CutId(0, 1), {"count": {"a": b"1"}}))

    class Merging:
        looked = 0

        def merged(self):
            self.looked += 1
            return -1 if self.looked == 1 else files.merged()

        look_up, read_delta = files.look_up, files.read_delta

    state = KeyedState(Merging())
    state.restore([CutId(0, 1), CutId(1, 1)])
    assert state.of("count", "a") == b"2"


def test_a_cut_that_another_host_merges_with_a_later_one_does_not_hide_that(files):
    """It merges both between the looks at the first and at the second."""
    cuts = [(CutId(0, 1), {"count": {"a": b"1"}}), (CutId(1, 1), {"count": {"a": b"2"}})]
    for cut in cuts:
        files.write_delta(*cut)

    class Merging:
        merged, look_up = files.merged, files.look_up

        def read_delta(self, cut):
            found = files.read_delta(cut)
            merge(files, *cuts)
            return found

    state = KeyedState(Merging())
    state.restore([cut for cut, _ in cuts])
    assert state.of("count", "a") == b"2"


def test_a_cut_whose_file_is_gone_is_refused(files):
    with pytest.raises(BadFile, match=r"changed/0-1: is missing; .*--fresh"):
        KeyedState(files).restore([CutId(0, 1)])

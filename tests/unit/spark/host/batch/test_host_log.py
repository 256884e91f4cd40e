"""The log of a host on a real disk: what the next host finds."""

from contextlib import ExitStack, closing

import pytest

from small_disk import mounted
from sojourn.errors import DiskFull, EngineError
from sojourn.spark.host.batch.cut import CutId, OpenRecord
from sojourn.spark.host.batch.host_log import Committed, Did, Entered, HostLog, LogMark, Took
from sojourn.spark.host.batch.log_files import LogFiles
from sojourn.spark.wire.record import Record, Root
from unit.spark.host.failing_disk import FailingDisk

BASE, NEXT = CutId(3, 1), CutId(4, 1)


@pytest.fixture
def log_in(tmp_path):
    """Return what makes the log of another host in the same folder."""
    with ExitStack() as stack:

        def made(layout="a"):
            files = stack.enter_context(closing(LogFiles(tmp_path / "log")))
            return HostLog(files, layout)

        yield made


def took(offset):
    return Took(Root(("lines", 0), offset))


def test_the_next_host_finds_all_in_order(log_in):
    log = log_in()
    assert list(log.recover(BASE)) == []
    record = OpenRecord(Root(("lines", 0), 7), "split", Record("lines/0/7", b"{}"))
    log.append([took(7), Entered(record)])
    log.append([Did(1)])
    assert list(log_in().recover(BASE)) == [
        [took(7), Entered(record)],
        [Did(1)],
    ]


def test_nothing_is_logged_before_it_is_known_where_it_begins(log_in):
    log = log_in()
    log.append([took(7)])
    assert list(log.recover(BASE)) == []


def test_it_goes_on_over_cuts_that_were_not_committed_and_over_hosts(log_in):
    first = log_in()
    first.recover(BASE)
    first.append([took(1), LogMark(NEXT), took(2)])
    second = log_in()
    assert list(second.recover(BASE)) == [[took(1)], [took(2)]]
    second.append([took(3)])
    assert list(log_in().recover(BASE)) == [[took(1)], [took(2)], [took(3)]]


def test_it_begins_at_the_cut_that_was_committed(tmp_path, log_in):
    log = log_in()
    log.recover(BASE)
    log.append([took(1), LogMark(NEXT), took(2)])
    log.append([Committed(NEXT), took(3)])
    assert [path.name for path in (tmp_path / "log").iterdir()] == ["2"]
    assert list(log.since(NEXT)) == [[took(2)], [took(3)]]
    assert list(log_in().recover(NEXT)) == [[took(2)], [took(3)]]


def test_a_group_that_was_torn_off_does_not_count(tmp_path, log_in):
    log = log_in()
    log.recover(BASE)
    log.append([took(1)])
    log.append([took(2), took(3)])
    path = tmp_path / "log" / "1"
    path.write_bytes(path.read_bytes()[:-1])
    second = log_in()
    assert list(second.recover(BASE)) == [[took(1)]]
    second.append([took(4)])
    assert list(log_in().recover(BASE)) == [[took(1)], [took(4)]]


def test_a_group_with_other_bytes_ends_it(tmp_path, log_in):
    log = log_in()
    log.recover(BASE)
    log.append([took(1)])
    log.append([took(2)])
    path = tmp_path / "log" / "1"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    log.append([took(3)])
    assert list(log_in().recover(BASE)) == [[took(1)]]


def test_what_a_host_adds_after_another_took_over_counts_for_nothing(log_in):
    old, new = log_in(), log_in()
    old.recover(BASE)
    old.append([took(1)])
    assert old.is_own
    assert list(new.recover(BASE)) == [[took(1)]]
    old.append([took(2)])
    new.append([took(3)])
    assert (old.is_own, new.is_own) == (False, True)
    with pytest.raises(EngineError, match="another host has taken over"):
        old.append([LogMark(NEXT)])
    assert list(log_in().recover(BASE)) == [[took(1)], [took(3)]]


def test_a_file_that_lost_what_the_next_one_builds_on_is_the_last(tmp_path, log_in):
    """As after a machine went down: nothing is synced, and anything may be missing."""
    log = log_in()
    log.recover(BASE)
    log.append([took(1)])
    log.append([took(2), LogMark(NEXT), took(3)])
    path = tmp_path / "log" / "1"
    path.write_bytes(path.read_bytes()[:-1])
    assert list(log_in().recover(BASE)) == [[took(1)]]
    assert list(log_in().recover(BASE)) == [[took(1)]]


def test_a_file_that_follows_one_that_is_lost_does_not_count(tmp_path, log_in):
    """A power failure may take the name of a file and leave that of a later one."""
    log = log_in()
    log.recover(BASE)
    log.append([took(1), LogMark(NEXT), took(2), LogMark(CutId(5, 1)), took(3)])
    (tmp_path / "log" / "2").unlink()
    second = log_in()
    assert list(second.recover(BASE)) == [[took(1)]]
    second.append([took(2)])
    assert list(log_in().recover(BASE)) == [[took(1)], [took(2)]]


def test_no_host_gets_the_number_of_a_file_that_another_may_still_write_to(log_in):
    old, new = log_in(), log_in()
    old.recover(NEXT)
    assert list(new.recover(BASE)) == []
    new.append([took(1)])
    old.append([took(9)])
    new.append([took(2)])
    assert list(log_in().recover(BASE)) == [[took(1)], [took(2)]]


def test_a_file_without_a_header_is_passed_over(tmp_path, log_in):
    """A host that was thought dead may write to a file that the next one has removed."""
    log = log_in()
    log.recover(BASE)
    log.append([took(1)])
    (tmp_path / "log" / "2").touch()
    second = log_in()
    assert list(second.recover(BASE)) == [[took(1)]]
    second.append([took(2)])
    (tmp_path / "log" / "2").write_bytes(b"a group")
    assert list(log_in().recover(BASE)) == [[took(1)], [took(2)]]


@pytest.mark.parametrize("fits", [0.0, 0.5])
def test_what_a_full_disk_takes_in_part_is_an_error_and_does_not_count(tmp_path, fits):
    (tmp_path / "log").mkdir()
    with FailingDisk(tmp_path) as disk, closing(LogFiles(tmp_path / "log")) as files:
        log = HostLog(files, "a")
        log.recover(BASE)
        log.append([took(1)])
        disk.full, disk.fits = True, fits
        with pytest.raises(EngineError, match=r"No space left on device; make room in .*log"):
            log.append([took(2)])
        disk.full = False
        assert list(HostLog(files, "a").recover(BASE)) == [[took(1)]]


@pytest.mark.parametrize(("base", "layout"), [(NEXT, "a"), (BASE, "b")])
def test_a_log_of_another_cut_or_layout_is_of_no_use(log_in, base, layout):
    log = log_in()
    log.recover(BASE)
    log.append([took(1)])
    other = log_in(layout)
    assert list(other.recover(base)) == []
    other.append([took(2)])
    assert list(log_in(layout).recover(base)) == [[took(2)]]


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "log").write_text("no folder")
    with pytest.raises(EngineError, match=r"cannot be written: .*; check .*log"):
        LogFiles(tmp_path / "log").create(1, b"")


def test_what_is_read_one_after_the_other_is_there_until_it_is_read(tmp_path, log_in):
    """Another host may remove the files meanwhile, and what it adds does not count."""
    log = log_in()
    log.recover(BASE)
    for offset in range(3):
        log.append([took(offset)])
    found = log_in().recover(BASE)
    assert next(found) == [took(0)]
    log.append([took(3)])
    (tmp_path / "log" / "1").unlink()
    assert list(found) == [[took(1)], [took(2)]]


def test_a_file_that_is_gone_has_nothing_in_it(tmp_path):
    files = LogFiles(tmp_path / "log")
    assert files.create(1, b"a")
    files.remove(1)
    files.remove(1)
    assert (files.read(1), files.numbers()) == (b"", [])
    (tmp_path / "log" / "2").touch()  # nothing of it was on disk when the machine went down
    assert files.read(2) == b""


def test_a_full_disk_is_named(tmp_path, log_in):
    log = log_in()
    log.recover(BASE)
    path = tmp_path / "log" / "1"
    path.unlink()
    path.symlink_to("/dev/full")
    with pytest.raises(DiskFull, match=r"No space left on device; make room in .*log"):
        log.append([took(1)])


class FullFolder:
    """The files of a log, on a disk that has room for so many *creates* and *appends*."""

    def __init__(self, files):
        self._files, self.creates, self.appends = files, 9, 9
        self.numbers, self.read, self.remove = files.numbers, files.read, files.remove

    def create(self, number, content):
        if not self.creates:
            raise DiskFull("the log", "/log")
        self.creates -= 1
        return self._files.create(number, content)

    def append(self, number, content):
        if not self.appends:
            raise DiskFull("the log", "/log")
        self.appends -= 1
        self._files.append(number, content)


@pytest.mark.parametrize("creates", [0, 1])
@pytest.mark.parametrize("appends", [0, 1, 2])
def test_what_there_is_no_room_for_is_logged_later_as_it_was(
    tmp_path, log_in, creates, appends
):
    """Each group is whole, and cuts are between the same groups."""
    with closing(LogFiles(tmp_path / "log")) as files:
        folder = FullFolder(files)
        log = HostLog(folder, "a")
        list(log.recover(BASE))
        folder.creates, folder.appends = creates, appends
        together = [took(1), took(2), LogMark(NEXT), took(3), Committed(NEXT), took(4)]
        if (creates, appends) == (1, 2):
            log.append(together)
        else:
            with pytest.raises(DiskFull):
                log.append(together)
            with pytest.raises(DiskFull):
                log.flush()
            folder.creates = folder.appends = 9
            log.flush()
        folder.appends = 9
        log.append([took(5)])
    assert list(log_in().since(NEXT)) == [[took(3), took(4)], [took(5)]]


def test_a_log_that_is_continued_without_room_is_begun_later(tmp_path, log_in):
    first = log_in()
    first.recover(BASE)
    first.append([took(1)])
    with closing(LogFiles(tmp_path / "log")) as files:
        folder = FullFolder(files)
        folder.creates = 0
        log = HostLog(folder, "a")
        assert list(log.recover(BASE)) == [[took(1)]]
        with pytest.raises(DiskFull):
            log.append([took(2)])
        folder.creates = 1
        log.flush()
        assert log.is_own
        assert list(log_in().since(BASE)) == [[took(1)], [took(2)]]


def test_a_log_that_another_host_continues_before_there_is_room_is_refused(tmp_path, log_in):
    with closing(LogFiles(tmp_path / "log")) as files:
        folder = FullFolder(files)
        folder.creates = 0
        log = HostLog(folder, "a")
        log.recover(BASE)
        list(log_in().recover(BASE))
        folder.creates = 1
        with pytest.raises(EngineError, match="another host has taken over its log"):
            log.flush()


def test_an_entry_of_which_a_part_was_written_is_taken_back(tmp_path):
    """Whatever were written after it could not be read any more."""
    with mounted(tmp_path / "disk", 64 << 10) as disk:
        with closing(LogFiles(disk.folder / "log")) as files:
            log = HostLog(files, "a")
            log.recover(BASE)
            log.append([took(1)])
            disk.fill(leave_bytes=4096)
            size = (disk.folder / "log" / "1").stat().st_size
            some = [took(offset) for offset in range(2, 1000)]  # more than there is room for
            with pytest.raises(DiskFull):
                log.append(some)
            assert (disk.folder / "log" / "1").stat().st_size == size
            disk.free()
            log.flush()
            log.append([took(1000)])
        with closing(LogFiles(disk.folder / "log")) as files:
            assert list(HostLog(files, "a").since(BASE)) == [[took(1)], some, [took(1000)]]

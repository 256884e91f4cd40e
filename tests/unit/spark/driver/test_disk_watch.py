"""What the driver knows of full disks; a small disk is a real one."""

import pytest

from small_disk import mounted
from sojourn.spark.driver.disk_watch import DiskWatch, has_room, lacks_room


class Clock:
    now_s = 0.0

    def __call__(self):
        return self.now_s


@pytest.mark.parametrize(
    ("text", "full"),
    [
        ("java.io.IOException: No space left on device", True),
        ("DiskFull: /x cannot be written: Disk quota exceeded; make room in /", True),
        ("java.io.IOException: Input/output error", False),
    ],
)
def test_errors_of_a_full_disk_are_known(text, full):
    assert lacks_room(text) is full


def test_a_disk_has_room_if_files_can_be_written_there(tmp_path):
    with mounted(tmp_path / "disk", 4 << 20) as disk:
        assert has_room(disk.folder)
        assert not has_room(disk.folder, 8 << 20)
        disk.fill()
        assert not has_room(disk.folder)
        disk.free()
        assert has_room(disk.folder)
        assert list(disk.folder.iterdir()) == []


def test_a_folder_that_is_gone_is_not_full(tmp_path):
    """Whatever is wrong with it, waiting for room does not help."""
    assert has_room(tmp_path / "nothing")


def test_it_is_full_until_files_can_be_written_again(tmp_path):
    clock = Clock()
    with mounted(tmp_path / "disk", 4 << 20) as disk:
        watch = DiskWatch([tmp_path, disk.folder], clock)
        watch.look()
        assert (watch.full_s, watch.notices) == (None, ())
        disk.fill()
        watch.lacks("IOException: No space left on device")
        clock.now_s = 7.0
        watch.look()
        assert (watch.full_s, watch.lack) == (7.0, "IOException: No space left on device")
        (notice,) = watch.notices
        assert notice.startswith(f"the disk of {tmp_path} is full; ")
        disk.free()
        watch.look()  # it has just looked
        assert watch.full_s == 7.0
        clock.now_s = 8.0
        watch.look()
        assert (watch.full_s, watch.lack, watch.notices) == (None, "", ())


def test_it_is_full_while_hosts_wait(tmp_path):
    clock = Clock()
    watch = DiskWatch([tmp_path], clock)
    watch.hosts_lack("the log cannot be written")
    clock.now_s = 3.0
    watch.look()
    watch.hosts_lack("the log cannot be written")
    assert watch.full_s == 3.0
    watch.lacks("a query failed")
    watch.hosts_lack("")
    assert watch.full_s == 3.0  # the query has not been started again
    clock.now_s = 4.0
    watch.look()
    assert watch.full_s is None

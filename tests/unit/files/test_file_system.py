"""A state is kept on a disk of this machine: LMDB, SQLite and locks are not safe elsewhere."""

from pathlib import Path

import pytest

from sojourn.errors import BadFile
from sojourn.files import file_system
from sojourn.files.file_system import file_system_of, is_network_file_system, require_local_disk
from sojourn.service.state_folder import StateFolder
from sojourn.spark.driver.state.state_lock import StateLock

MOUNTS = r"""22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
23 22 0:50 / /shared rw - nfs4 server:/export rw,vers=4.2
24 23 0:51 / /shared/local\040disk rw - xfs /dev/sdb1 rw
25 22 0:52 / /twice rw - ext4 /dev/sdc1 rw
26 25 0:53 / /twice rw - fuse.sshfs me@server: rw
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "ext4"),
        ("/shared", "nfs4"),
        ("/shared/orders", "nfs4"),
        ("/shared-not", "ext4"),
        ("/shared/local disk/orders", "xfs"),
        ("/twice/x", "fuse.sshfs"),
    ],
)
def test_the_innermost_and_latest_mount_is_that_of_a_folder(path, kind):
    assert file_system_of(Path(path), MOUNTS) == kind


@pytest.mark.parametrize(
    "kind", ["nfs", "nfs4", "cifs", "smb3", "ceph", "lustre", "glusterfs", "fuse", "fuse.s3fs"]
)
def test_network_file_systems_are_known(kind):
    assert is_network_file_system(kind)


@pytest.mark.parametrize(
    "kind",
    ["ext4", "xfs", "btrfs", "zfs", "overlay", "tmpfs", "fuseblk", "fuse.fuse-overlayfs"],
)
def test_disks_of_this_machine_are_known(kind):
    assert not is_network_file_system(kind)


@pytest.fixture
def mounted(tmp_path, monkeypatch):
    """Return a folder that the system says is on NFS."""
    mounts = tmp_path / "mountinfo"
    mounts.write_text(f"{MOUNTS}27 22 0:54 / {tmp_path}/nfs rw - nfs server:/x rw\n")
    monkeypatch.setattr(file_system, "_MOUNTS", mounts)
    return tmp_path / "nfs"


def test_a_state_folder_on_the_network_is_refused_with_the_way_out(mounted, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(mounted, target_is_directory=True)
    for folder in (mounted / "orders", link / "orders"):
        with pytest.raises(BadFile) as raised:
            StateFolder(folder, "orders").__enter__()
        assert str(raised.value) == (
            f"{folder}: is on a network file system (nfs), where memory maps and locks are not "
            "safe; choose a folder on a local disk with --state; only --shared-state may be on "
            "a network file system"
        )
        with pytest.raises(BadFile, match=r"is on a network file system \(nfs\)"):
            StateLock(folder).__enter__()
    assert not mounted.exists()
    require_local_disk(tmp_path)


def test_a_system_that_does_not_say_is_believed(tmp_path, monkeypatch):
    monkeypatch.setattr(file_system, "_MOUNTS", tmp_path / "missing")
    require_local_disk(tmp_path)

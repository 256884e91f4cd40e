"""The type of the file system that a folder is on: local or network."""

import re
from pathlib import Path

from sojourn.errors import BadFile

_MOUNTS = Path("/proc/self/mountinfo")
# Clients cache, and memory maps and locks need not be coherent between machines. Cluster file
# systems on a shared disk (gfs2, ocfs2) keep both coherent. A folder of a virtual machine's
# host (virtiofs, 9p) is not shared with other machines, and where 9p lacks memory maps, opening
# the state store fails.
_NETWORK = frozenset({
    "afs", "beegfs", "ceph", "cifs", "coda", "davfs", "glusterfs", "gpfs", "lustre", "ncpfs",
    "nfs", "nfs4", "orangefs", "panfs", "pvfs2", "smb3", "smbfs", "wekafs",
})  # fmt: skip
# Most FUSE file systems are remote (sshfs, s3fs, glusterfs, juicefs), and their names are
# arbitrary, so these are the exceptions.
_LOCAL_FUSE = frozenset({"fuse.bindfs", "fuse.fuse-overlayfs", "fuse.gocryptfs"})


def require_local_disk(folder: Path) -> None:
    """Raise `BadFile` if *folder*, which need not exist, is on a network file system."""
    try:
        mounts = _MOUNTS.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:  # only Linux has this file
        return
    kind = file_system_of(folder.resolve(), mounts)
    if is_network_file_system(kind):
        raise BadFile(
            str(folder),
            f"is on a network file system ({kind}), where memory maps and locks are not safe",
            "choose a folder on a local disk with --state; only --shared-state may be on a "
            "network file system",
        )


def file_system_of(folder: Path, mounts: str) -> str:
    r"""Return the type of the file system of an absolute path, from Linux's `mountinfo`.

    >>> mounts = '''22 1 8:1 / / rw - ext4 /dev/sda1 rw
    ... 40 22 0:50 / /shared\\040data rw shared:7 - nfs4 server:/export rw'''
    >>> file_system_of(Path("/shared data/orders"), mounts), file_system_of(Path("/x"), mounts)
    ('nfs4', 'ext4')
    """
    found, kind = -1, ""
    for line in mounts.splitlines():
        mount, _, storage = line.partition(" - ")
        # a space, a tab, a line feed and a backslash are written as octal numbers
        written = re.sub(r"\\([0-7]{3})", lambda m: chr(int(m[1], 8)), mount.split(" ")[4])
        point = Path(written)
        # of several at one place, the last covers the others
        if folder.is_relative_to(point) and len(point.parts) >= found:
            found, kind = len(point.parts), storage.split(" ")[0]
    return kind


def is_network_file_system(kind: str) -> bool:
    """Return whether files on a file system of this type may be on another machine.

    >>> [is_network_file_system(kind) for kind in ("ext4", "nfs4", "fuse.sshfs", "fuseblk")]
    [False, True, True, False]
    """
    fuse = kind == "fuse" or kind.startswith("fuse.")
    return kind in _NETWORK or (fuse and kind not in _LOCAL_FUSE)

"""What a deduplicating sink knows of a stream, in files: from one batch to the next.

A file is named for the partition and the offset up to which the stream was read. A batch that
fails leaves a file too. It is run again with another end, and the batch that follows begins
there: it finds the file of the attempt that was committed. Beside it is where the sink ended
when a batch began there: whatever attempts at that batch have written comes after.
"""

from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import msgspec

from sojourn.errors import BadFile
from sojourn.files.checked_file import RESTORE, read_checked, write_checked
from sojourn.files.private_files import append_to
from sojourn.spark.wire.repetitions import Memory

__all__ = ["SavedMemory", "SinkMemory"]


class SavedMemory(msgspec.Struct, array_like=True, frozen=True):
    """What was read of a stream, and the ids at the sink of what comes later in the stream."""

    memory: Memory
    ahead: set[str] = set()


_END = ".end"
_decoder = msgspec.msgpack.Decoder(SavedMemory)


@dataclass(frozen=True, slots=True)
class SinkMemory:
    """The files in *folder*; those of so many batches before the last commit are *kept*."""

    folder: Path
    kept: int = 0

    def load(self, partition: int, offset: int) -> SavedMemory | None:
        """Return what is known before *offset*, and drop what is older; None without a file.

        What is dropped are the batches before those that Spark may go back to. What the one
        that is committed has left stays: the batch that begins now may be repeated.
        """
        self._refresh_listing()
        files = self._files(partition)
        read = max((at for at, suffix in files if not suffix and at <= offset), default=None)
        if read is None:
            return None
        # batches began where the one before them was committed
        began = sorted(at for at, suffix in files if suffix == _END[1:] and at < read)
        oldest = [*began, read][max(0, len(began) - self.kept)]
        for (at, _), path in files.items():
            if at < oldest:
                path.unlink(missing_ok=True)
        path = self._path(partition, read)
        try:
            return _decoder.decode(read_checked(path))
        except msgspec.MsgspecError as error:
            raise BadFile(str(path), f"cannot be read: {error}", RESTORE) from error

    def save(self, partition: int, offset: int, known: SavedMemory) -> None:
        """Keep what is known before *offset*; it is on disk when this returns."""
        write_checked(self._path(partition, offset), msgspec.msgpack.encode(known))

    def sink_end(self, partition: int, offset: int) -> int | None:
        """Return where the sink ended when the batch from *offset* on began, if it did."""
        path = self._path(partition, offset, _END)
        return int(read_checked(path)) if path.exists() else None

    def note_sink_end(self, partition: int, offset: int, end: int) -> None:
        """Keep where the sink ends as a batch begins; it is on disk when this returns."""
        write_checked(self._path(partition, offset, _END), b"%d" % end)

    def _refresh_listing(self) -> None:
        """Let the next listing show what tasks on other machines have written.

        An NFS client may show for up to a minute what it has listed before. When it changes
        the folder itself, the server tells that others have, and it lists the folder anew.
        """
        if self.folder.is_dir():
            changed = self.folder / f"listing-{uuid4().hex}.new"
            append_to(changed).close()
            changed.unlink()

    def _path(self, partition: int, offset: int, suffix: str = "") -> Path:
        return self.folder / f"{partition}-{offset}{suffix}"

    def _files(self, partition: int) -> dict[tuple[int, str], Path]:
        """Return the files of a partition by their offsets and suffixes."""
        found = {}
        for path in self.folder.glob(f"{partition}-*"):
            number, _, suffix = path.name.partition("-")[2].partition(".")
            found[int(number), suffix] = path
        return found

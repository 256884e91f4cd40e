"""The deduplication state of a sink, in files, from one batch to the next.

A file is named for the partition and the offset up to which the stream was read. A failed
attempt may leave a file too. But its retry ends at another offset, and the next batch begins
there, so it finds the file of the attempt that was committed. A second file (`.end`) has the
end offset of the sink when a batch began at that offset: attempts at that batch have written
only after it.
"""

from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import msgspec

from sojourn.errors import BadFile
from sojourn.files.durable_file import RESTORE, read_checked, write_checked
from sojourn.files.private_files import append_to
from sojourn.spark.wire.repetitions import Memory


class SavedMemory(msgspec.Struct, array_like=True, frozen=True):
    """The deduplication state of a partition at an offset."""

    memory: Memory
    """The records that were read."""
    ahead: set[str] = set()
    """Ids at the sink of records that come later in the stream."""


_END = ".end"
_decoder = msgspec.msgpack.Decoder(SavedMemory)


@dataclass(frozen=True, slots=True)
class SinkMemory:
    folder: Path
    kept: int = 0
    """Batches before the last commit whose files stay."""

    def load(self, partition: int, offset: int) -> SavedMemory | None:
        """Return the state at *offset*, None without a file; delete files no longer needed.

        Those are the files of batches to which Spark cannot go back. The file of the last
        committed batch stays, because the batch that begins now may be retried.
        """
        self._refresh_listing()
        files = self._files(partition)
        read = max((at for at, suffix in files if not suffix and at <= offset), default=None)
        if read is None:
            return None
        # each batch begins where the one before it was committed
        began = sorted(at for at, suffix in files if suffix == _END[1:] and at < read)
        # where the oldest of the kept batches began
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
        """Save the state at *offset*; it is on disk when this returns."""
        write_checked(self._path(partition, offset), msgspec.msgpack.encode(known))

    def sink_end(self, partition: int, offset: int) -> int | None:
        """Return the end of the sink when the batch at *offset* began; None if none has."""
        path = self._path(partition, offset, _END)
        return int(read_checked(path)) if path.exists() else None

    def note_sink_end(self, partition: int, offset: int, end: int) -> None:
        """Save the end of the sink as a batch begins; it is on disk when this returns."""
        write_checked(self._path(partition, offset, _END), b"%d" % end)

    def _refresh_listing(self) -> None:
        """Make the next listing show the files that tasks on other machines have written.

        An NFS client may cache a listing for up to a minute. When it changes the folder itself,
        it learns from the server that others have too, and drops its cache.
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

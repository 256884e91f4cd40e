"""What a deduplicating sink knows of a stream, in files: from one batch to the next.

A file is named for the partition and the offset up to which the stream was read. A batch that
fails leaves a file too. It is run again with another end, and the batch that follows begins
there: it finds the file of the attempt that was committed. Beside it is where the sink ended
when a batch began there: whatever attempts at that batch have written comes after.
"""

from dataclasses import dataclass
from pathlib import Path

import msgspec

from sojourn.durable_file import write_durably
from sojourn.errors import BadFile
from sojourn.host.batch.repetitions import Memory

__all__ = ["SavedMemory", "SinkMemory"]


class SavedMemory(msgspec.Struct, array_like=True, frozen=True):
    """What was read of a stream, and the ids at the sink of what comes later in the stream."""

    memory: Memory
    ahead: set[str] = set()


_END = ".end"
_decoder = msgspec.msgpack.Decoder(SavedMemory)


@dataclass(frozen=True, slots=True)
class SinkMemory:
    """The files in *folder*."""

    folder: Path

    def load(self, partition: int, offset: int) -> SavedMemory | None:
        """Return what is known before *offset*, and drop what is older; None without a file.

        What is dropped are the batches before the one that is committed. What that one has
        left stays: the batch that begins now may be repeated.
        """
        files = self._files(partition)
        read = max((at for at, suffix in files if not suffix and at <= offset), default=None)
        if read is None:
            return None
        for (at, _), path in files.items():
            if at < read:
                path.unlink(missing_ok=True)
        path = self._path(partition, read)
        try:
            return _decoder.decode(path.read_bytes())
        except msgspec.MsgspecError as error:
            way_out = "restore it, or start without this state (--fresh)"
            raise BadFile(str(path), f"cannot be read: {error}", way_out) from error

    def save(self, partition: int, offset: int, known: SavedMemory) -> None:
        """Keep what is known before *offset*; it is on disk when this returns."""
        write_durably(self._path(partition, offset), msgspec.msgpack.encode(known))

    def sink_end(self, partition: int, offset: int) -> int | None:
        """Return where the sink ended when the batch from *offset* on began, if it did."""
        path = self._path(partition, offset, _END)
        return int(path.read_bytes()) if path.exists() else None

    def note_sink_end(self, partition: int, offset: int, end: int) -> None:
        """Keep where the sink ends as a batch begins; it is on disk when this returns."""
        write_durably(self._path(partition, offset, _END), b"%d" % end)

    def _path(self, partition: int, offset: int, suffix: str = "") -> Path:
        return self.folder / f"{partition}-{offset}{suffix}"

    def _files(self, partition: int) -> dict[tuple[int, str], Path]:
        """Return the files of a partition by their offsets and suffixes."""
        found = {}
        for path in self.folder.glob(f"{partition}-*"):
            number, _, suffix = path.name.partition("-")[2].partition(".")
            found[int(number), suffix] = path
        return found

"""Records that a batch leaves to the next one: those in service when it ended.

Waiting for them would keep all other processors idle for as long as the slowest takes. Spark
commits the batch without them, so they are kept in a file until the batch that takes them
over is committed too.
"""

from dataclasses import dataclass
from pathlib import Path

import msgspec

from sojourn.durable_file import write_durably
from sojourn.errors import BadFile
from sojourn.host.messages import Hello, Record
from sojourn.spark.headers import Lineage

__all__ = ["CarryOver", "PassedRecord"]

PassedRecord = tuple[Lineage, Record]
"""A record that was passed on to a host, and where it comes from."""

_decoder = msgspec.msgpack.Decoder(list[PassedRecord])


@dataclass(frozen=True, slots=True)
class CarryOver:
    """The files in *folder*: one for a batch of a partition, of one query."""

    folder: Path

    def load(self, hello: Hello) -> list[PassedRecord]:
        """Return what the batch before left, and drop what is not needed any more.

        What is older was taken over by a batch that is committed: the one before is, when
        a batch begins (`real_time`). What that one left stays, for this batch may be repeated.
        A file that was not finished is of a batch that is repeated now.
        """
        for path in self.folder.glob(f"{hello.partition}-*"):
            number = path.name.partition("-")[2]
            if not number.isdigit() or int(number) < hello.batch - 1:
                path.unlink(missing_ok=True)
        path = self._path(hello.partition, hello.batch - 1)
        try:
            return _decoder.decode(path.read_bytes())
        except FileNotFoundError:
            return []
        except msgspec.MsgspecError as error:
            way_out = "restore it, or start without this state (--fresh)"
            raise BadFile(str(path), f"cannot be read: {error}", way_out) from error

    def save(self, hello: Hello, records: list[PassedRecord]) -> None:
        """Keep what a batch leaves; it is on the disk when this returns.

        Where the batch was repeated, it replaces what was left the first time.
        """
        path = self._path(hello.partition, hello.batch)
        if not records:
            path.unlink(missing_ok=True)
            return
        write_durably(path, msgspec.msgpack.encode(records))

    def _path(self, partition: int, batch: int) -> Path:
        return self.folder / f"{partition}-{batch}"

"""The files of a host's log."""

import errno
import os
from contextlib import suppress
from dataclasses import dataclass, field
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

from sojourn.errors import EngineError
from sojourn.files.durable_file import unwritable
from sojourn.files.private_files import append_to, make_folder, write_new


@dataclass(slots=True)
class LogFiles:
    """The files of a log in *folder*, by number; the one that is written to stays open."""

    folder: Path
    _number: int = 0
    _file: BinaryIO | None = field(default=None, repr=False)

    def numbers(self) -> list[int]:
        try:
            names = [path.name for path in self.folder.iterdir()]
        except FileNotFoundError:
            return []
        return sorted(int(name) for name in names if name.isdigit())

    def create(self, number: int, content: bytes) -> bool:
        """Create a file atomically with *content*; return False if it exists already."""
        new = self.folder / f"{uuid4().hex}.new"
        try:
            make_folder(self.folder)
            write_new(new, content)
            return self._linked(new, number)
        except OSError as error:
            raise self._failed(error) from error
        finally:
            with suppress(OSError):
                new.unlink()

    def _linked(self, new: Path, number: int) -> bool:
        try:
            os.link(new, self._path(number))
        except FileExistsError:
            return False
        return True

    def append(self, number: int, content: bytes) -> None:
        """Append all of *content* to a file, or nothing."""
        try:
            if self._file is None or self._number != number:
                self.close()
                self._file, self._number = append_to(self._path(number), buffering=0), number
            written = self._file.write(content)
            if written < len(content):
                # Otherwise the next write would follow a torn frame, and never be read.
                number = self._file.fileno()
                os.ftruncate(number, os.fstat(number).st_size - written)
        except OSError as error:
            raise self._failed(error) from error
        if written < len(content):
            raise self._failed(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))

    def read(self, number: int) -> bytes | mmap:
        """Return the content of a file, valid even after its removal; empty if it is gone."""
        try:
            with self._path(number).open("rb") as file:
                return mmap(file.fileno(), 0, access=ACCESS_READ)
        except FileNotFoundError:
            return b""
        except ValueError:  # an empty file cannot be mapped
            return b""

    def remove(self, number: int) -> None:
        self._path(number).unlink(missing_ok=True)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _path(self, number: int) -> Path:
        return self.folder / str(number)

    def _failed(self, error: OSError) -> EngineError:
        return unwritable(f"the log in {self.folder}", self.folder, error)

"""File locks, which the system releases when the process that holds them ends."""

import fcntl
import os
from pathlib import Path

from sojourn.errors import BadFile, EngineError
from sojourn.files.private_files import FILE_MODE, make_folder


class FileLock:
    """A lock on the file at *path*, held by this process and those that inherit *file*.

    The file is not deleted on release: a lock on a deleted file would exclude no process.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: int | None = None

    @property
    def file(self) -> int:
        """The descriptor of the open file. Raise `EngineError` if it is not open."""
        if self._file is None:
            raise EngineError(f"{self.path} is not locked")
        return self._file

    def take(self, holder: str) -> bool:
        """Acquire the lock and write *holder* to the file; return False if it is held.

        Raise `BadFile` if the file cannot be written.
        """
        try:
            if self._file is None:
                make_folder(self.path.parent)
                flags = os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
                self._file = os.open(self.path, flags, FILE_MODE)
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError as error:
            problem = f"cannot be written: {error.strerror}"
            raise BadFile(str(self.path), problem, "check the path") from error
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, holder.encode(), 0)
        return True

    def take_or_refuse(self, problem: str, way_out: str) -> None:
        """Acquire the lock. Raise `EngineError` with the pid of its holder if it is held."""
        if not self.take(str(os.getpid())):
            pid = self.holder() or "unknown"
            self.release()
            raise EngineError(f"{problem}, pid {pid}; {way_out}")

    def holder(self) -> str:
        """Return the text that the holder of the lock wrote to the file."""
        return os.pread(self.file, 200, 0).decode(errors="replace").strip()

    def release(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

"""Which task writes a partition of a sink: one at a time, although machines may come back.

A machine that is cut off the network seems dead, and another task takes over. When it is
connected again, the first task is still there, and so is what its Kafka client has not sent.
The claim on a partition, a file in the shared folder, ends such a task: it looks before it
passes anything on, at most half a second after the last look. What its client still holds is
refused by the broker (`message.timestamp.before.max.ms`), and whoever takes over waits until
that is certain.
"""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from sojourn.errors import EngineError
from sojourn.files.private_files import make_folder, write_new

__all__ = ["Claim"]

_LOOK_S = 0.5


@dataclass(slots=True)
class Claim:
    """The claim of one task on a *partition*, in *folder*; the times are those of *clock*."""

    folder: Path
    partition: int
    clock: Callable[[], float] = time.monotonic
    wait: Callable[[float], None] = time.sleep
    _token: str = field(default_factory=lambda: uuid4().hex)
    _looked_s: float = 0.0

    def take(self) -> float | None:
        """Claim the partition; return how long ago the claim before was renewed.

        None if nobody has claimed it before. The time is that of the file system: machines
        may have different clocks.
        """
        make_folder(self.folder)
        try:
            before_s: float | None = self._path.stat().st_mtime
        except FileNotFoundError:
            before_s = None
        new = self._path.with_suffix(f".{self._token}")
        write_new(new, self._token.encode())
        new.replace(self._path)  # nobody reads half of it
        self._looked_s = self.clock()
        return None if before_s is None else self._path.stat().st_mtime - before_s

    def outwait(self, age_s: float | None, fence_s: float) -> None:
        """Wait until the broker refuses all that the task before may still send.

        Its claim was renewed *age_s* ago, and brokers refuse what is older than *fence_s*; 0
        if they do not, and there is nothing to wait for.
        """
        if fence_s and age_s is not None and (left_s := fence_s + _LOOK_S - age_s) > 0:
            self.wait(left_s)

    def renew(self) -> None:
        """Look whether the claim still holds, unless that was seen just now."""
        if self.clock() - self._looked_s > _LOOK_S:
            self.check()

    def check(self) -> None:
        """Raise `EngineError` if another task has claimed the partition since."""
        if self._path.read_text() != self._token:
            raise EngineError(
                f"another task has taken over partition {self.partition}; this one was "
                "presumed dead"
            )
        os.utime(self._path)
        self._looked_s = self.clock()

    @property
    def _path(self) -> Path:
        return self.folder / f"{self.partition}.claim"

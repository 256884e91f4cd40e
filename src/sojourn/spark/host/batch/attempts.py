"""Attempt numbers: each run of a part's query has one, on disk.

A run takes a number by creating a file exclusively. So a later run has a higher number, even
after crashes.
"""

import os
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from sojourn.files.durable_file import unwritable, write_durably
from sojourn.files.private_files import make_folder, sync_folder

__all__ = ["Attempts"]

# Kept, because tasks of earlier runs may still connect: their lower number refuses them.
_MOST = 100


@dataclass(slots=True)
class Attempts:
    """The most recent files in *folder*, named `NUMBER`, each with the id of its run."""

    folder: Path
    _known: dict[str, int] = field(default_factory=dict)

    def number(self, run: str) -> int:
        """Return the number of a run, a new one if it has none.

        Only the first task of a run accesses files; the number is then cached.
        """
        if run not in self._known:
            try:
                self._known[run] = self._taken(run)
            except OSError as error:
                what = f"the number of a run in {self.folder}"
                raise unwritable(what, self.folder, error) from error
            if len(self._known) > _MOST:
                del self._known[next(iter(self._known))]
        return self._known[run]

    def _taken(self, run: str) -> int:
        make_folder(self.folder)
        while True:
            found = sorted(int(p.name) for p in self.folder.iterdir() if p.name.isdigit())
            for number in found[-_MOST:]:
                # The lowest one, because two hosts may have taken one for the same run at
                # the same moment.
                if self._run(number) == run:
                    return number
            # Linked once it is complete: a number is never visible without the id of its run.
            new = self.folder / f"{uuid4().hex}.new"
            write_durably(new, run.encode())
            try:
                with suppress(FileExistsError):  # another run has it
                    os.link(new, self.folder / str((found or [0])[-1] + 1))
            finally:
                new.unlink()
            for number in found[:-_MOST]:
                (self.folder / str(number)).unlink(missing_ok=True)
            sync_folder(self.folder)

    def _run(self, number: int) -> str | None:
        try:
            return (self.folder / str(number)).read_text()
        except FileNotFoundError:  # another host has removed it as too old
            return None

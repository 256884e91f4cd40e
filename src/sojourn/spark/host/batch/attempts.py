"""The numbers of attempts: each run of a part's query has one, on disk.

A number is taken by creating a file that nobody else has created, so a later run has a higher
one, whatever died in between.
"""

import os
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from sojourn.files.durable_file import unwritable, write_durably
from sojourn.files.private_files import make_folder, sync_folder

__all__ = ["Attempts"]

# Tasks of earlier runs may still come, and are refused by their lower number.
_MOST = 100


@dataclass(slots=True)
class Attempts:
    """The files in *folder*, `NUMBER`, each with the id of its run; the last ones of them."""

    folder: Path
    _known: dict[str, int] = field(default_factory=dict)

    def number(self, run: str) -> int:
        """Return the number of a run, a new one if it has none.

        Files are read and written for the first task of a run alone.
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
                # the lowest, where two have taken one for the same run at the same moment
                if self._run(number) == run:
                    return number
            # linked when it is complete: whoever sees the number sees whose it is
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
        except FileNotFoundError:  # another host has found it too old
            return None

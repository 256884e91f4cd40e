"""The runs of a part's query: their attempt numbers, and the checkpoint that they resume."""

import os
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from sojourn.files.durable_file import unwritable, write_durably
from sojourn.files.private_files import make_folder, sync_folder

# Kept, because tasks of earlier runs may still connect: their lower number refuses them.
_MOST = 100
_CHECKPOINT = "checkpoint-id"


@dataclass(slots=True)
class Attempts:
    """Attempt numbers of runs: the most recent files in *folder*, each with the id of its run.

    A run takes a number by creating the file of that name exclusively. So a later run has a
    higher number, even after crashes.
    """

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


@dataclass(slots=True)
class CheckpointId:
    """The id that Spark gave the checkpoint of a part's query, in a file of *folder*.

    A query with another checkpoint begins with batch 0, at any offsets. The host would mistake
    its batches for those that are committed.
    """

    folder: Path
    _known: str = field(default="", init=False)

    def read(self) -> str:
        """Return the id; empty before the first query."""
        try:
            return (self.folder / _CHECKPOINT).read_text(encoding="utf-8")
        except FileNotFoundError:
            return ""

    def refusal(self, query: str) -> str:
        """Return why the query with this checkpoint id is refused; empty if it is not.

        The first query binds the state to its checkpoint. A query without an id is accepted,
        because its checkpoint is unknown.
        """
        if not query or query == self._known:
            return ""
        if not (found := self.read()):
            write_durably(self.folder / _CHECKPOINT, query.encode())
        elif found != query:
            return (
                f"the state in {self.folder} belongs to the checkpoint with id {found}, and "
                f"the query has another, with id {query}; start it with that checkpoint again, "
                "or with a new state folder"
            )
        self._known = query
        return ""

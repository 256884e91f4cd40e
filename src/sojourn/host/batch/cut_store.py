"""Cuts and attempts on disk, in a folder of their part.

An attempt is a run of the part's query. Its number is taken by creating a file that nobody
else has created, so a later run has a higher one, whatever died in between.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import msgspec

from sojourn.durable_file import sync_folder, write_durably
from sojourn.errors import BadFile, EngineError
from sojourn.host.batch.cut import Cut, CutId, OpenRecord
from sojourn.host.batch.host_log import HostLog
from sojourn.host.batch.log_entries import Entry
from sojourn.host.batch.log_files import LogFiles
from sojourn.host.batch.segment_files import SegmentFiles
from sojourn.host.state.keyed_state import Delta, MergeState
from sojourn.host.state.state_files import StateFiles

__all__ = ["CutFiles"]

_NOTHING = Cut(id=CutId(-1, 0), taken={})
_WAY_OUT = "restore it, or start without this state (--fresh)"
_decode = msgspec.msgpack.Decoder(Cut).decode


@dataclass(frozen=True, slots=True)
class CutFiles:
    """The files in *folder*: `cuts/BATCH-ATTEMPT`, and `attempts/NUMBER` with the run's id.

    What is spilled to disk is in `segments`, and what functions keep for keys in *state*, which
    another process may be writing if it is opened *readonly*. What has happened since the last
    committed cut is in the *log*, which only hosts of the same *layout* continue.
    """

    folder: Path
    layout: str = ""
    readonly: bool = False
    state: StateFiles = field(init=False, repr=False)
    log: HostLog = field(init=False, repr=False)
    _log_files: LogFiles = field(init=False, repr=False)
    _segments: SegmentFiles = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_log_files", LogFiles(self.folder / "log"))
        object.__setattr__(self, "log", HostLog(self._log_files, self.layout))
        object.__setattr__(self, "_segments", SegmentFiles(self.folder / "segments"))
        object.__setattr__(self, "state", StateFiles(self.folder / "state", self.readonly))

    def attempt(self, run: str) -> int:
        """Return the number of a run, a new one if it has none."""
        folder = self.folder / "attempts"
        folder.mkdir(parents=True, exist_ok=True)
        while True:
            numbers = sorted(int(path.name) for path in folder.iterdir() if path.name.isdigit())
            for number in numbers:
                # the lowest, where two have taken one for the same run at the same moment
                if (folder / str(number)).read_text() == run:
                    return number
            # linked when it is complete: whoever sees the number sees whose it is
            new = folder / f"{uuid4().hex}.new"
            write_durably(new, run.encode())
            with suppress(FileExistsError):  # another run has it
                os.link(new, folder / str((numbers or [0])[-1] + 1))
            new.unlink()
            sync_folder(folder)

    def last(self, batch: int) -> CutId:
        """Return the cut of a batch that is committed: that of the last attempt at it."""
        if batch < 0:
            return _NOTHING.id
        cuts = [cut for cut in self._all() if cut.batch == batch]
        if not cuts:
            raise EngineError(
                f"{self.folder} has no cut of batch {batch}, which Spark has committed; "
                f"{_WAY_OUT}"
            )
        return max(cuts)

    def committed(self) -> int:
        """Return the last batch that is committed for sure; -1 if none is.

        A batch begins, and then ends with a cut, once the one before it is committed.
        """
        return max([self.merged(), *(cut.batch - 1 for cut in self._all())])

    def has(self, batch: int) -> bool:
        """Tell whether there is a cut of a batch."""
        return any(cut.batch == batch for cut in self._all())

    def load(self, cut: CutId) -> Cut:
        """Return a cut; that of the batch before the first has nothing in it."""
        if cut == _NOTHING.id:
            return _NOTHING
        path = self._path(cut)
        try:
            return _decode(path.read_bytes())
        except (OSError, msgspec.MsgspecError) as error:
            raise BadFile(str(path), f"cannot be read: {error}", _WAY_OUT) from error

    def all_open(self, cut: Cut) -> Iterator[OpenRecord]:
        """Yield the records that are open in a cut, with those that were spilled."""
        yield from cut.open
        for segment in cut.spilled:
            yield from self.read_segment(segment.name)

    def save(self, cut: Cut, changed: Delta | None = None) -> None:
        """Keep a cut; it is on disk when this returns, with what was spilled or *changed*."""
        self._segments.sync([segment.name for segment in cut.spilled])
        if changed:
            self.state.write_delta(cut.id, changed)
        write_durably(self._path(cut.id), msgspec.msgpack.encode(cut))

    def drop_before(self, batch: int) -> None:
        """Remove what nothing goes on from any more, once *batch* is committed."""
        for cut in self._all():
            if cut.batch < batch:
                self._path(cut).unlink(missing_ok=True)

    def write_segment(self, batch: int, records: Sequence[OpenRecord]) -> str:
        """Keep records that were spilled in a batch, and return their name.

        They are on the disk for sure once a cut that names them is.
        """
        return self._segments.write(batch, records)

    def read_segment(self, name: str) -> list[OpenRecord]:
        """Return the records of a segment."""
        return self._segments.read(name)

    def drop_segments(self, batch: int, names: Iterable[str]) -> None:
        """Remove what was spilled before a batch, but for the segments *names*."""
        self._segments.drop(batch, names)

    @property
    def log_is_own(self) -> bool:
        """Whether no other host has continued the log."""
        return self.log.is_own

    def recover(self, base: CutId) -> Iterator[list[Entry]]:
        """Return what was logged since a cut, by groups, and continue the log from there."""
        return self.log.recover(base)

    def logged(self, base: CutId) -> Iterator[list[Entry]]:
        """Return what was logged since a cut, by groups."""
        return self.log.since(base)

    def states(self, cut: Cut, operator: str) -> Iterator[tuple[str, bytes]]:
        """Yield the keys of an operator, with the state of each, at a cut or a later one."""
        return self.state.states(operator, cut.changed)

    def merged(self) -> int:
        """Return the last batch whose states are in the store; -1 at the beginning."""
        return self.state.merged()

    def look_up(self, operator: str, key: str) -> bytes:
        """Return a state of the store; empty if there is none."""
        return self.state.look_up(operator, key)

    def ordered(
        self, operator: str, start: str, end: str, most: int
    ) -> list[tuple[str, bytes]]:
        """Return states of the store that have an order, from *start* up to *end*."""
        return self.state.ordered(operator, start, end, most)

    def read_delta(self, cut: CutId) -> Delta:
        """Return the states that had changed by a cut."""
        return self.state.read_delta(cut)

    def merge(self, merge: MergeState) -> None:
        """Put states that have changed into the store."""
        self.state.merge(merge)

    def close(self) -> None:
        """Close what is open: the log, and the store of states."""
        self._log_files.close()
        self.state.close()

    def _all(self) -> list[CutId]:
        found = []
        for path in (self.folder / "cuts").glob("*-*"):
            batch, _, attempt = path.name.partition("-")
            if batch.isdigit() and attempt.isdigit():
                found.append(CutId(int(batch), int(attempt)))
        return found

    def _path(self, cut: CutId) -> Path:
        return self.folder / "cuts" / f"{cut.batch}-{cut.attempt}"

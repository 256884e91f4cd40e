"""Cuts on disk, in a folder of their part, with all that belongs to them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from sojourn.errors import BadFile, EngineError
from sojourn.files.checked_file import RESTORE, read_checked, write_checked
from sojourn.spark.host.batch.attempts import Attempts
from sojourn.spark.host.batch.cut import Cut, CutId, OpenRecord
from sojourn.spark.host.batch.host_log import HostLog
from sojourn.spark.host.batch.log_entries import Entry
from sojourn.spark.host.batch.log_files import LogFiles
from sojourn.spark.host.batch.segment_files import SegmentFiles
from sojourn.spark.host.state.keyed_state import Delta, MergeState
from sojourn.spark.host.state.state_files import Replaced, StateFiles

__all__ = ["CutFiles"]

_NOTHING = Cut(id=CutId(-1, 0), taken={})
_decode = msgspec.msgpack.Decoder(Cut).decode


@dataclass(frozen=True, slots=True)
class CutFiles:
    """The files in *folder*: `cuts/BATCH-ATTEMPT`, and those of `Attempts`.

    What is spilled to disk is in `segments`, and what functions keep for keys in *state*, which
    another process may be writing if it is opened *readonly*. What has happened since the last
    committed cut is in the *log*, which only hosts of the same *layout* continue.
    """

    folder: Path
    layout: str = ""
    readonly: bool = False
    state: StateFiles = field(init=False, repr=False)
    log: HostLog = field(init=False, repr=False)
    _attempts: Attempts = field(init=False, repr=False)
    _log_files: LogFiles = field(init=False, repr=False)
    _segments: SegmentFiles = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_attempts", Attempts(self.folder / "attempts"))
        object.__setattr__(self, "_log_files", LogFiles(self.folder / "log"))
        object.__setattr__(self, "log", HostLog(self._log_files, self.layout))
        object.__setattr__(self, "_segments", SegmentFiles(self.folder / "segments"))
        object.__setattr__(self, "state", StateFiles(self.folder / "state", self.readonly))

    def attempt(self, run: str) -> int:
        """Return the number of a run, a new one if it has none."""
        return self._attempts.number(run)

    def last(self, batch: int) -> CutId:
        """Return the cut of a batch that is committed: that of the last attempt at it."""
        if batch < 0:
            return _NOTHING.id
        cuts = [cut for cut in self.cuts() if cut.batch == batch]
        if not cuts:
            oldest = min((cut.batch for cut in self.cuts()), default=-1)
            kept = f", the oldest is of batch {oldest}" if oldest > batch else ""
            raise EngineError(
                f"{self.folder} has no cut of batch {batch}, the last that Spark has "
                f"committed{kept}; {RESTORE}"
            )
        return max(cuts)

    def newest_attempt(self) -> int:
        """Return the last attempt that has made a cut; -1 if none has."""
        return max((cut.attempt for cut in self.cuts()), default=-1)

    def committed(self) -> int:
        """Return the last batch that is committed for sure; -1 if none is.

        A batch begins, and then ends with a cut, once the one before it is committed. After a
        power failure there may be cuts of later batches, by earlier attempts.
        """
        last = max(((cut.attempt, cut.batch) for cut in self.cuts()), default=(0, 0))
        return max(self.merged(), last[1] - 1)

    def has(self, batch: int) -> bool:
        """Tell whether there is a cut of a batch."""
        return any(cut.batch == batch for cut in self.cuts())

    def load(self, cut: CutId) -> Cut:
        """Return a cut; that of the batch before the first has nothing in it."""
        if cut == _NOTHING.id:
            return _NOTHING
        path = self._path(cut)
        try:
            found = _decode(read_checked(path))
        except FileNotFoundError as error:
            raise BadFile(str(path), "is missing", RESTORE) from error
        except msgspec.MsgspecError as error:
            raise BadFile(str(path), f"cannot be read: {error}", RESTORE) from error
        self.state.expect(merged=found.merged, store_bytes=found.store_bytes)
        return found

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
        merged, store_bytes = self.state.extent()
        cut = msgspec.structs.replace(cut, merged=merged, store_bytes=store_bytes)
        write_checked(self._path(cut.id), msgspec.msgpack.encode(cut))
        for other in self.cuts():  # Spark has lost these batches, and has come here again
            if other.batch > cut.id.batch and other.attempt < cut.id.attempt:
                self._path(other).unlink(missing_ok=True)

    def drop_before(self, batch: int) -> None:
        """Remove what nothing goes on from any more, once *batch* is committed."""
        for cut in self.cuts():
            if cut.batch < batch:
                self._path(cut).unlink(missing_ok=True)

    def prepare(self) -> None:
        """Open the store of states, which may take room. Raise `DiskFull` if there is none."""
        self.state.prepare()

    def append(self, entries: Iterable[Entry]) -> None:
        """Log a group, with the segments that wait for room. Raise `DiskFull` without any."""
        self.log.append(entries)
        if self._segments.wait_for_room:
            self._segments.flush()

    def flush(self) -> None:
        """Write what could not be written yet. Raise `DiskFull` if there is still no room."""
        self._segments.flush()
        self.log.flush()

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

    def replace_states(self, cut: Cut, states: Replaced) -> None:
        """Let operators have these *states*, and no others, as of a committed cut.

        What was logged since then is worked out again.
        """
        merged = self.merged()
        changed = [(c, self.read_delta(c)) for c in cut.changed if c.batch > merged]
        self.state.merge(MergeState(cut.id.batch, changed), states)
        for number in self._log_files.numbers():
            self._log_files.remove(number)

    def close(self) -> None:
        """Close what is open: the log, and the store of states."""
        self._log_files.close()
        self.state.close()

    def cuts(self) -> list[CutId]:
        """Return the cuts on disk, in no order."""
        found = []
        for path in (self.folder / "cuts").glob("*-*"):
            batch, _, attempt = path.name.partition("-")
            if batch.isdigit() and attempt.isdigit():
                found.append(CutId(int(batch), int(attempt)))
        return found

    def _path(self, cut: CutId) -> Path:
        return self.folder / "cuts" / f"{cut.batch}-{cut.attempt}"

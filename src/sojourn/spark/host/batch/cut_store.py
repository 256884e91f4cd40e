"""Cuts on disk, in a folder of their part, with their segments, states and log."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from sojourn.errors import BadFile, EngineError
from sojourn.files.durable_file import RESTORE, read_checked, write_checked
from sojourn.spark.host.batch.cut import Cut, CutId, OpenRecord
from sojourn.spark.host.batch.host_log import Entry, HostLog
from sojourn.spark.host.batch.log_files import LogFiles
from sojourn.spark.host.batch.query_runs import Attempts
from sojourn.spark.host.batch.spill import SegmentFiles
from sojourn.spark.host.state.keyed_state import Delta, MergeState
from sojourn.spark.host.state.state_files import Replaced, StateFiles

_NOTHING = Cut(id=CutId(-1, 0), taken={})
_decode = msgspec.msgpack.Decoder(Cut).decode


class CutFiles:
    """The files in *folder*.

    `cuts/BATCH-ATTEMPT` are the cuts, `attempts` the numbers of attempts, `segments` spilled
    records, `state` the states of keys, and `log` the changes since the last committed cut.
    Only hosts with the same *layout* continue each other's log. If *readonly*, another process
    may be writing the states.
    """

    def __init__(self, folder: Path, layout: str = "", *, readonly: bool = False) -> None:
        self.folder = folder
        self.attempts = Attempts(folder / "attempts")
        self.segments = SegmentFiles(folder / "segments")
        self.state = StateFiles(folder / "state", readonly)
        self._log_files = LogFiles(folder / "log")
        self.log = HostLog(self._log_files, layout)

    def last(self, batch: int) -> CutId:
        """Return the cut of a committed batch, made by the last attempt at it.

        Raise `EngineError` if there is none.
        """
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
        """Return the last batch that is known to be committed; -1 if none is.

        A batch makes its cut only after the batch before it is committed. After a power failure
        there may be cuts of later batches, by earlier attempts.
        """
        last = max(((cut.attempt, cut.batch) for cut in self.cuts()), default=(0, 0))
        return max(self.state.merged(), last[1] - 1)

    def load(self, cut: CutId) -> Cut:
        """Return a cut; the one before the first batch is empty.

        Raise `BadFile` if it cannot be read, or if the store of states is older.
        """
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
        """Yield all open records of a cut, including those that were spilled."""
        yield from cut.open
        for segment in cut.spilled:
            yield from self.segments.read(segment.name)

    def save(self, cut: Cut, changed: Delta | None = None) -> None:
        """Write a cut, and sync it to disk with its segments and the states *changed*."""
        # Segments and states first: a cut must only name files that are on disk.
        self.segments.sync([segment.name for segment in cut.spilled])
        if changed:
            self.state.write_delta(cut.id, changed)
        merged, store_bytes = self.state.extent()
        cut = msgspec.structs.replace(cut, merged=merged, store_bytes=store_bytes)
        write_checked(self._path(cut.id), msgspec.msgpack.encode(cut))
        # After a power failure Spark has lost these batches, and runs them again.
        for other in self.cuts():
            if other.batch > cut.id.batch and other.attempt < cut.id.attempt:
                self._path(other).unlink(missing_ok=True)

    def drop_before(self, batch: int) -> None:
        for cut in self.cuts():
            if cut.batch < batch:
                self._path(cut).unlink(missing_ok=True)

    def append(self, entries: Iterable[Entry]) -> None:
        """Log a group, and write segments that wait for room. Raise `DiskFull` without room."""
        self.log.append(entries)
        if self.segments.unwritten:
            self.segments.flush()

    def flush(self) -> None:
        """Retry writes that had no room. Raise `DiskFull` if there still is none."""
        self.segments.flush()
        self.log.flush()

    def replace_states(self, cut: Cut, states: Replaced) -> None:
        """Replace all states of some operators, as of a committed cut.

        The log since then is removed, so the next host processes those records again.
        """
        merged = self.state.merged()
        changed = [(c, self.state.read_delta(c)) for c in cut.changed if c.batch > merged]
        self.state.merge(MergeState(cut.id.batch, changed), states)
        for number in self._log_files.numbers():
            self._log_files.remove(number)

    def close(self) -> None:
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

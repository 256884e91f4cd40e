"""States on disk: a store of all that Spark has committed, and files with what changed since.

The store is mapped into memory, so a state is read in a microsecond or two, and pages that are
in use stay in the system's cache. Each committed batch is one transaction.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import islice, takewhile
from pathlib import Path
from zlib import crc32

import lmdb
import msgspec

from sojourn.durable_file import write_durably
from sojourn.errors import BadFile, EngineError
from sojourn.host.batch.cut import CutId
from sojourn.host.state.keyed_state import Delta, MergeState, is_ordered

__all__ = ["GROUPS", "StateFiles"]

GROUPS = 256
"""Keys belong to so many groups; those of a group are neighbours in the store."""

_WAY_OUT = "restore it, or start without this state (--fresh)"
# The most that a store may ever have; a file takes only what is in it.
_MOST_BYTES = 1 << 40
_LONGEST_KEY = 511
_MERGED = b"\0merged"
# Written at a time: while Python writes, the event loop of the host waits.
_CHUNK = 500
_decode = msgspec.msgpack.Decoder(dict[str, dict[str, bytes]]).decode
_decode_long = msgspec.msgpack.Decoder(tuple[str, bytes]).decode
_encode = msgspec.msgpack.Encoder().encode


@dataclass(slots=True)
class StateFiles:
    """The files in *folder*: `store`, and `changed/BATCH-ATTEMPT` for each cut.

    *readonly* leaves them to the process that writes them, which may go on.
    """

    folder: Path
    readonly: bool = False
    _opened: lmdb.Environment | None = field(default=None, repr=False)

    def merged(self) -> int:
        """Return the last batch whose changes are in the store; -1 at the beginning."""
        if self._missing:
            return -1
        with self._store().begin() as reading:
            return _number(reading.get(_MERGED))

    def look_up(self, operator: str, key: str) -> bytes:
        """Return a state of the store; empty if there is none."""
        if self._missing:
            return b""
        place = _place(operator, key)
        with self._store().begin() as reading:
            found = reading.get(place)
        if found is None:
            return b""
        return _decode_long(found)[1] if _is_long(place, operator) else found

    def ordered(
        self, operator: str, start: str, end: str, most: int
    ) -> list[tuple[str, bytes]]:
        """Return not more than *most* states of keys from *start* up to *end*, in order."""
        if self._missing:
            return []
        first, last = _place(operator, start), _place(operator, end)
        with self._store().begin() as reading:
            cursor = reading.cursor()
            found = cursor.iternext() if cursor.set_range(first) else ()
            begun = len(operator.encode()) + 2
            return [
                (place[begun:].decode(), state)
                for place, state in takewhile(lambda one: one[0] < last, islice(found, most))
            ]

    def states(self, operator: str, cuts: Iterable[CutId] = ()) -> Iterator[tuple[str, bytes]]:
        """Yield the keys of an operator, with the state of each, as of one moment.

        That is the moment of the last of *cuts*, or a later one that is merged.
        """
        # Before the store: a file is removed once its changes are merged.
        deltas: dict[CutId, Delta | None] = dict.fromkeys(cuts)
        for cut in deltas:
            with suppress(FileNotFoundError):
                deltas[cut] = self.read_delta(cut)
        if self._missing:
            changed = self._changed(operator, -1, deltas)
        else:
            with self._store().begin() as reading:
                changed = self._changed(operator, _number(reading.get(_MERGED)), deltas)
                for key, state in _all(reading, operator):
                    if found := changed.pop(key, state):
                        yield key, found
        for key, state in changed.items():
            if state:
                yield key, state

    def _changed(
        self, operator: str, merged: int, deltas: Mapping[CutId, Delta | None]
    ) -> dict[str, bytes]:
        """Return what has changed after batch *merged*."""
        changed: dict[str, bytes] = {}
        for cut, delta in deltas.items():
            if cut.batch > merged:
                if delta is None:
                    raise BadFile(str(self._path(cut)), "is missing", _WAY_OUT)
                changed |= delta.get(operator, {})
        return changed

    def write_delta(self, cut: CutId, changed: Delta) -> None:
        """Keep what had changed by a cut; it is on disk when this returns."""
        write_durably(self._path(cut), _encode(changed))

    def read_delta(self, cut: CutId) -> Delta:
        """Return what had changed by a cut. Raise `FileNotFoundError` if it is removed."""
        path = self._path(cut)
        try:
            return _decode(path.read_bytes())
        except FileNotFoundError:
            raise
        except (OSError, msgspec.MsgspecError) as error:
            raise BadFile(str(path), f"cannot be read: {error}", _WAY_OUT) from error

    def merge(self, merge: MergeState) -> None:
        """Put changes into the store, all or none; then remove the files that had them."""
        try:
            # pages that a reader had in use when it was killed can be used again
            self._store().reader_check()
            with self._store().begin(write=True) as writing:
                merged = _number(writing.get(_MERGED))
                for cut, changed in merge.cuts:
                    if cut.batch > merged:
                        for operator, states in changed.items():
                            _put(writing, operator, states)
                merged = max(merged, merge.upto)
                writing.put(_MERGED, str(merged).encode())
        except lmdb.Error as error:
            raise EngineError(
                f"{self.folder} cannot be written: {error}; make room, or check the disk"
            ) from error
        for path in (self.folder / "changed").glob("*-*"):
            batch = path.name.partition("-")[0]
            if batch.isdigit() and int(batch) <= merged:
                path.unlink(missing_ok=True)

    def close(self) -> None:
        """Close the store."""
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    @property
    def _missing(self) -> bool:
        """Whether nothing is in the store, and must not be: it is of another process."""
        return (
            self.readonly
            and self._opened is None
            and not (self.folder / "store" / "data.mdb").exists()
        )

    def _store(self) -> lmdb.Environment:
        if self._opened is None:
            path = self.folder / "store"
            try:
                if not self.readonly:
                    path.mkdir(parents=True, exist_ok=True)
                self._opened = lmdb.open(
                    str(path),
                    map_size=_MOST_BYTES,
                    readahead=False,
                    readonly=self.readonly,
                    create=not self.readonly,
                )
            except (OSError, lmdb.Error) as error:
                raise BadFile(str(path), f"cannot be opened: {error}", _WAY_OUT) from error
        return self._opened

    def _path(self, cut: CutId) -> Path:
        return self.folder / "changed" / f"{cut.batch}-{cut.attempt}"


def _number(found: bytes | None) -> int:
    return -1 if found is None else int(found)


def _place(operator: str, key: str) -> bytes:
    """Return where a state is in the store; of a key that is too long there, a digest is."""
    name = key.encode(errors="surrogatepass")
    group = 0 if is_ordered(operator) else crc32(name) % GROUPS
    start = b"%b\0%c" % (operator.encode(), group)
    if len(start) + len(name) <= _LONGEST_KEY:
        return start + name
    return start + b"\0" + blake2b(name, digest_size=32).digest()


def _is_long(place: bytes, operator: str) -> bool:
    return place[len(operator.encode()) + 2 :].startswith(b"\0")


def _all(reading: "lmdb.Transaction[bytes]", operator: str) -> Iterator[tuple[str, bytes]]:
    start = operator.encode() + b"\0"
    cursor = reading.cursor()
    found_any = cursor.set_range(start)
    for place, found in cursor if found_any else ():
        if not place.startswith(start):
            return
        if _is_long(place, operator):
            yield _decode_long(found)
        else:
            yield place[len(start) + 1 :].decode(errors="surrogatepass"), found


def _put(writing: lmdb.Transaction, operator: str, states: Mapping[str, bytes]) -> None:
    kept: list[tuple[bytes, bytes]] = []
    for key, state in states.items():
        place = _place(operator, key)
        if not state:
            writing.delete(place)
        elif _is_long(place, operator):
            kept.append((place, _encode((key, state))))
        else:
            kept.append((place, state))
    ordered = iter(sorted(kept))  # neighbours are on the same page
    with writing.cursor() as cursor:
        while some := list(islice(ordered, _CHUNK)):
            cursor.putmulti(some)

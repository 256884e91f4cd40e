"""States on disk: an LMDB store of all committed changes, and files with the changes since.

The store is mapped into memory, so a state is read in a microsecond or two, and pages in use
stay in the system's cache. Each merge is one transaction. A cut records the last batch and the
size of the store: a store that has less is refused. Each state has a checksum.
"""

import errno
import os
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import islice, takewhile
from pathlib import Path
from struct import Struct
from typing import TypeAlias
from zlib import crc32

import lmdb
import msgspec

from sojourn.errors import BadFile, DiskFull, EngineError
from sojourn.files.durable_file import RESTORE, read_checked, unwritable, write_checked
from sojourn.files.private_files import FILE_MODE, make_folder
from sojourn.spark.host.batch.cut import CutId
from sojourn.spark.host.state.keyed_state import Delta, MergeState, StateMoment, is_ordered

Replaced: TypeAlias = Mapping[str, Iterable[tuple[str, bytes]]]
"""Keys and states by operator."""
# Upper limit of a store's size; the file only takes the space of its content.
_MOST_BYTES = 1 << 40
_LONGEST_KEY = 511
# More than the size of LMDB's reader table.
_LOCK_BYTES = 12 << 10
_MERGED = b"\0merged"
# Groups of keys; the keys of a group are neighbours in the store.
_GROUPS = 256
# States written per call: the event loop of the host may wait that long for the GIL.
_CHUNK = 500
_CHECK = Struct("!I")
_decode = msgspec.msgpack.Decoder(dict[str, dict[str, bytes]]).decode
_decode_long = msgspec.msgpack.Decoder(tuple[str, bytes]).decode
_encode = msgspec.msgpack.Encoder().encode


@dataclass(slots=True)
class StateFiles:
    """The files in *folder*: `store`, and `changed/BATCH-ATTEMPT` for each cut."""

    folder: Path
    readonly: bool = False
    """Another process may be writing them."""
    _opened: lmdb.Environment | None = field(default=None, repr=False)
    _opening: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _merged: int = -1
    """The store must have all batches up to this one."""
    _bytes: int = 0
    """The store must have at least this size."""

    def expect(self, *, merged: int, store_bytes: int) -> None:
        """Raise `BadFile` if the store has less: it was replaced, truncated or removed."""
        self._merged = max(self._merged, merged)
        self._bytes = max(self._bytes, store_bytes)
        if self._opened is not None:
            self._check_size()
            self._check_merged(self._opened)

    def extent(self) -> tuple[int, int]:
        """Return the last batch that the store has for certain, and its size in bytes."""
        return self._merged, self._bytes

    def prepare(self) -> None:
        """Open the store, which may need disk space, so that reading it later needs none."""
        self._store()

    def merged(self) -> int:
        if self._missing:
            return -1
        with self._reading() as reading:
            return _number(reading.get(_MERGED))

    def look_up(self, operator: str, key: str) -> bytes:
        if self._missing:
            return b""
        place = _place(operator, key)
        try:
            with self._store().begin() as reading:
                found = reading.get(place)
        except lmdb.Error as error:
            raise self._unreadable(error) from error
        if found is None:
            return b""
        found = self._checked(place, found)
        return _decode_long(found)[1] if _is_long(place, operator) else found

    def ordered(
        self, operator: str, start: str, end: str, most: int
    ) -> list[tuple[str, bytes]]:
        if self._missing:
            return []
        first, last = _place(operator, start), _place(operator, end)
        with self._reading() as reading:
            cursor = reading.cursor()
            found = cursor.iternext() if cursor.set_range(first) else ()
            begun = len(operator.encode()) + 2
            return [
                (place[begun:].decode(), self._checked(place, state))
                for place, state in takewhile(lambda one: one[0] < last, islice(found, most))
            ]

    def states(self, operator: str, cuts: Iterable[CutId] = ()) -> Iterator[tuple[str, bytes]]:
        """Yield the keys and states of an operator in a consistent snapshot.

        It is that of the last of *cuts*, or of a later cut that is merged already.
        """
        with self.moment(cuts) as moment:
            yield from moment.states(operator)

    @contextmanager
    def moment(self, cuts: Iterable[CutId] = ()) -> Iterator[StateMoment]:
        """Open the snapshot of `states` for all operators."""
        # Files before the store, because a merge removes them: a file that is missing here is
        # then in the store.
        deltas: dict[CutId, Delta | None] = dict.fromkeys(cuts)
        for cut in deltas:
            with suppress(FileNotFoundError):
                deltas[cut] = self.read_delta(cut)
        if self._missing:
            yield StateMoment(self._changed_since(-1, deltas), -1, lambda _: ())
            return
        with self._reading() as reading:
            merged = _number(reading.get(_MERGED))
            changed = self._changed_since(merged, deltas)
            yield StateMoment(changed, merged, lambda operator: self._all(reading, operator))

    def _changed_since(
        self, merged: int, deltas: Mapping[CutId, Delta | None]
    ) -> Mapping[str, Mapping[str, bytes]]:
        """Return the changes of cuts after batch *merged*, by operator and key."""
        changed: dict[str, dict[str, bytes]] = {}
        for cut, delta in deltas.items():
            if cut.batch > merged:
                if delta is None:
                    raise BadFile(str(self._path(cut)), "is missing", RESTORE)
                for operator, states in delta.items():
                    changed.setdefault(operator, {}).update(states)
        return changed

    def write_delta(self, cut: CutId, changed: Delta) -> None:
        """Write the changes of a cut, and sync them to disk."""
        write_checked(self._path(cut), _encode(changed))

    def read_delta(self, cut: CutId) -> Delta:
        path = self._path(cut)
        try:
            return _decode(read_checked(path))
        except msgspec.MsgspecError as error:
            raise BadFile(str(path), f"cannot be read: {error}", RESTORE) from error

    def merge(self, merge: MergeState, replaced: Replaced | None = None) -> None:
        """Merge changes into the store in one transaction, then remove their files.

        All states of the operators in *replaced* are replaced.
        """
        try:
            # Releases the pages of readers that were killed.
            self._store().reader_check()
            with self._store().begin(write=True) as writing:
                merged = _number(writing.get(_MERGED))
                for cut, changed in merge.cuts:
                    if cut.batch > merged:
                        for operator, states in changed.items():
                            _put(writing, operator, states)
                for operator, every in (replaced or {}).items():
                    _replace(writing, operator, every)
                merged = max(merged, merge.upto)
                writing.put(_MERGED, str(merged).encode())
        except lmdb.Error as error:
            if _is_full(error):
                raise DiskFull(str(self._folder), str(self._folder)) from error
            raise EngineError(
                f"{self._folder} cannot be written: {error}; check the disk"
            ) from error
        self._merged, self._bytes = merged, self._size()
        for path in (self.folder / "changed").glob("*-*"):
            batch = path.name.partition("-")[0]
            if batch.isdigit() and int(batch) <= merged:
                path.unlink(missing_ok=True)

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    @property
    def _folder(self) -> Path:
        return self.folder / "store"

    @property
    def _missing(self) -> bool:
        """Whether there is no store yet: `merge` or `prepare` creates it."""
        if self._opened is not None or self._size():
            return False
        self._check_size()
        return True

    @contextmanager
    def _reading(self) -> Iterator["lmdb.Transaction[bytes]"]:
        """Yield a read transaction, which sees a snapshot of the store."""
        try:
            with self._store().begin() as reading:
                yield reading
        except lmdb.Error as error:
            raise self._unreadable(error) from error

    def _store(self) -> lmdb.Environment:
        if self._opened is not None:
            return self._opened
        with self._opening:
            if self._opened is None:
                self._opened = self._open()
        return self._opened

    def _open(self) -> lmdb.Environment:
        self._check_size()
        if not self.readonly:
            self._make()
        try:
            opened = lmdb.open(
                str(self._folder),
                map_size=_MOST_BYTES,
                readahead=False,
                readonly=self.readonly,
                create=not self.readonly,
                mode=FILE_MODE,
            )
        except (OSError, lmdb.Error) as error:
            if _is_full(error) and not self._bytes:
                # A store that was only begun could not be opened later.
                (self._folder / "data.mdb").unlink(missing_ok=True)
                raise DiskFull(str(self._folder), str(self._folder)) from error
            raise BadFile(str(self._folder), f"cannot be opened: {error}", RESTORE) from error
        try:
            self._check_merged(opened)
        except BaseException:
            opened.close()
            raise
        return opened

    def _make(self) -> None:
        """Create the folder of the store, and the lock file with LMDB's reader table.

        The lock file is mapped into memory, so its blocks are allocated here: if that happened
        at the first access on a full disk, a signal would kill the process.
        """
        try:
            make_folder(self._folder)
            flags = os.O_CREAT | os.O_RDWR | os.O_CLOEXEC
            lock = os.open(self._folder / "lock.mdb", flags, FILE_MODE)
            try:
                os.posix_fallocate(lock, 0, _LOCK_BYTES)
            finally:
                os.close(lock)
        except OSError as error:
            raise unwritable(str(self._folder), self._folder, error) from error

    def _size(self) -> int:
        try:
            return (self._folder / "data.mdb").stat().st_size
        except OSError:
            return 0

    def _check_size(self) -> None:
        """Raise `BadFile` if the store was truncated: LMDB would read past its end."""
        size_bytes = self._size()
        if size_bytes < self._bytes:
            problem = (
                f"is truncated: it has {size_bytes} of at least {self._bytes} bytes"
                if size_bytes
                else f"is missing or empty; it had {self._bytes} bytes"
            )
            raise BadFile(str(self._folder / "data.mdb"), problem, RESTORE)

    def _check_merged(self, opened: lmdb.Environment) -> None:
        """Raise `BadFile` if the store is older than the last cut that was read."""
        if self._merged < 0:
            return
        try:
            with opened.begin() as reading:
                merged = _number(reading.get(_MERGED))
        except lmdb.Error as error:
            raise self._unreadable(error) from error
        if merged < self._merged:
            problem = f"has states up to batch {merged}, not batch {self._merged}"
            raise BadFile(str(self._folder), problem, RESTORE)

    def _unreadable(self, error: lmdb.Error) -> BadFile:
        return BadFile(str(self._folder), f"cannot be read: {error}", RESTORE)

    def _checked(self, place: bytes, found: bytes) -> bytes:
        """Return a state without its checksum. Raise `BadFile` if that does not match."""
        state = found[_CHECK.size :]
        if found[: _CHECK.size] != _CHECK.pack(crc32(state, crc32(place))):
            operator = place.partition(b"\0")[0].decode()
            problem = f"has a state of {operator} that is damaged: its checksum does not match"
            raise BadFile(str(self._folder), problem, RESTORE)
        return state

    def _all(
        self, reading: "lmdb.Transaction[bytes]", operator: str
    ) -> Iterator[tuple[str, bytes]]:
        start = operator.encode() + b"\0"
        cursor = reading.cursor()
        found_any = cursor.set_range(start)
        for place, found in cursor if found_any else ():
            if not place.startswith(start):
                return
            state = self._checked(place, found)
            if _is_long(place, operator):
                yield _decode_long(state)
            else:
                yield place[len(start) + 1 :].decode(errors="surrogatepass"), state

    def _path(self, cut: CutId) -> Path:
        return self.folder / "changed" / f"{cut.batch}-{cut.attempt}"


def _is_full(error: Exception) -> bool:
    """Return whether LMDB failed on a full disk; it has no error of its own for a quota."""
    return isinstance(error, lmdb.DiskError) or os.strerror(errno.EDQUOT) in str(error)


def _number(found: bytes | None) -> int:
    return -1 if found is None else int(found)


def _place(operator: str, key: str) -> bytes:
    """Return the key of a state in the store: operator, group and key, or a digest if long.

    With a digest, the state is stored together with its key.
    """
    name = key.encode(errors="surrogatepass")
    group = 0 if is_ordered(operator) else crc32(name) % _GROUPS
    start = b"%b\0%c" % (operator.encode(), group)
    if len(start) + len(name) <= _LONGEST_KEY:
        return start + name
    # A zero byte, with which no key begins, marks the digest.
    return start + b"\0" + blake2b(name, digest_size=32).digest()


def _is_long(place: bytes, operator: str) -> bool:
    return place[len(operator.encode()) + 2 :].startswith(b"\0")


def _with_check(place: bytes, state: bytes) -> bytes:
    return _CHECK.pack(crc32(state, crc32(place))) + state


def _replace(
    writing: lmdb.Transaction, operator: str, every: Iterable[tuple[str, bytes]]
) -> None:
    start = operator.encode() + b"\0"
    with writing.cursor() as cursor:
        while cursor.set_range(start) and bytes(cursor.key()).startswith(start):
            cursor.delete()
    states = iter(every)
    while some := dict(islice(states, _CHUNK)):
        _put(writing, operator, some)


def _put(writing: lmdb.Transaction, operator: str, states: Mapping[str, bytes]) -> None:
    kept: list[tuple[bytes, bytes]] = []
    for key, state in states.items():
        place = _place(operator, key)
        if not state:
            writing.delete(place)
        elif _is_long(place, operator):
            kept.append((place, _with_check(place, _encode((key, state)))))
        else:
            kept.append((place, _with_check(place, state)))
    ordered = iter(sorted(kept))  # neighbours are on the same page
    with writing.cursor() as cursor:
        while some := list(islice(ordered, _CHUNK)):
            cursor.putmulti(some)

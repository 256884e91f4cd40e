"""A folder on a disk that fails: between any two system calls, when it is full, with the power.

The calls of the code under test happen, on real files. What the disk holds for certain is kept
beside them: the content of a file as of its last fsync, and the names in a folder as of the
last fsync of that folder. A power failure takes anything else, or leaves it. Folders
themselves stay: file systems with a journal keep those in which a file was synced.
"""

import errno
import io
import os
import stat
from contextlib import contextmanager, suppress
from unittest import mock


class Crash(BaseException):
    """The process was killed before a system call, or in the middle of a write.

    No code under test may catch it.
    """


class _Node:
    """A file, which may have several names."""

    def __init__(self):
        self.content, self.synced = bytearray(), b""


class FailingDisk:
    """All that is below *root*, while it is entered as a context.

    The process can be killed before any call that changes something, or half way in a write.
    """

    def __init__(self, root):
        self.root = str(root)
        self.names, self.synced = {}, {}
        self.opened = {}
        self.dead = self.full = False
        self.crash_in, self.done = None, 1.0
        self.fits, self._meanwhile = 0.0, None
        self._patches = []

    def __enter__(self):
        self.real = {name: getattr(os, name) for name in _CALLS}
        self.real_open = io.open
        for name, call in _CALLS.items():
            self._patches.append(mock.patch.object(os, name, call.__get__(self)))
        self._patches.append(mock.patch.object(io, "open", self._open_file))
        for patch in self._patches:
            patch.start()
        return self

    def __exit__(self, *_):
        for patch in reversed(self._patches):
            patch.stop()
        self._patches.clear()

    # -- faults ------------------------------------------------------------------------------

    def crash_after(self, calls, part=1.0):
        """Kill the process after that many more calls; *part* of a write is carried out."""
        self.crash_in, self.done = calls, part

    def kill(self):
        """Kill the process that makes the call under way."""
        self.dead = True

    def revive(self):
        """Let another process use the disk."""
        self.dead, self.crash_in = False, None

    @contextmanager
    def interrupted(self, meanwhile):
        """Call *meanwhile* before every call, if it is given."""
        before, self._meanwhile = self._meanwhile, meanwhile
        try:
            yield
        finally:
            self._meanwhile = before

    def _before(self, size=0):
        """Return how many bytes of *size* are written; raise if the process is dead."""
        if self.dead:
            raise Crash
        if self._meanwhile is not None:
            meanwhile = self._meanwhile
            with self.interrupted(None):
                meanwhile()
            if self.dead:
                raise Crash
        if self.crash_in is not None:
            self.crash_in -= 1
            if self.crash_in < 0:
                self.dead = True
                return int(size * self.done)
        return int(size * self.fits) if self.full else size

    def _changes(self, *, grows=False):
        """Take note of a call that changes names; it fails on a full disk if that *grows*."""
        self._before()
        if self.dead:
            raise Crash
        if self.full and grows:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def power_fails(self, random):
        """Lose what is not on the disk for certain, as *random* decides."""
        left = {}
        for path in sorted({*self.names, *self.synced}):
            now, then = self.names.get(path), self.synced.get(path)
            if node := now if now is then else random.choice([now, then]):
                left[path] = node
            with suppress(FileNotFoundError):
                self.real["unlink"](path)
        contents = {id(node): _survives(node, random) for node in left.values()}
        for path, node in left.items():
            node.synced = contents[id(node)]
            node.content = bytearray(node.synced)
            with self.real_open(path, "wb") as file:
                file.write(node.synced)
        self.names, self.synced, self.opened = dict(left), dict(left), {}

    # -- files -------------------------------------------------------------------------------

    def _ours(self, path):
        """Return a path as text if it is on this disk."""
        if isinstance(path, int):
            return None
        text = os.fspath(path)
        return text if f"{text}/".startswith(f"{self.root}/") else None

    def _open_file(self, file, mode="r", buffering=-1, *more, **named):
        """Open a file as Python does."""
        if isinstance(file, int):
            if file in self.opened and "r" not in mode:
                return _File(self, file, buffered=buffering != 0)
        elif (path := self._ours(file)) and not (mode.startswith("r") and "+" not in mode):
            flags = {"w": os.O_CREAT | os.O_TRUNC, "a": os.O_CREAT | os.O_APPEND}[mode[0]]
            number = _open(self, path, flags | os.O_WRONLY)
            return _File(self, number, buffered=buffering != 0)
        return self.real_open(file, mode, buffering, *more, **named)

    def write(self, number, content):
        """Write to a file; return how much, and raise if nothing could be."""
        node = self.opened[number][1]
        done = self._before(len(content))
        written = bytes(content[:done])
        self.real["write"](number, written)
        node.content += written
        if self.dead:
            raise Crash
        if not done and content:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return done

    def find(self, number):
        """Return path and node of a file that was opened to be read; None if not on here."""
        opened = os.fstat(number)
        if stat.S_ISDIR(opened.st_mode):
            return None, None
        for path, node in self.names.items():
            if os.path.samestat(os.stat(path), opened):  # noqa: PTH116
                return path, node
        return None, None

    def close(self, number):
        """Close a file."""
        self.opened.pop(number, None)
        self.real["close"](number)


class _File:
    """A file that is written, from its beginning or at its end."""

    def __init__(self, disk, number, *, buffered):
        self._disk, self._number, self._buffered = disk, number, buffered
        self._waiting, self.closed = bytearray(), False

    def fileno(self):
        return self._number

    def write(self, content):
        if not self._buffered:
            return self._disk.write(self._number, content)
        self._waiting += content
        return len(content)

    def flush(self):
        while self._waiting:
            del self._waiting[: self._disk.write(self._number, self._waiting)]

    def close(self):
        if self.closed:
            return
        self.closed = True
        try:
            self.flush()
        finally:
            self._disk.close(self._number)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def _survives(node, random):
    """Return what is left of a file's content after a power failure."""
    now, then = bytes(node.content), node.synced
    if now == then:
        return now
    some = random.randrange(len(now) + 1)
    choices = [then, now, now[:some], now[:some] + bytes(len(now) - some)]
    if now.startswith(then):  # what was synced is there
        choices = [choice for choice in choices if choice.startswith(then)]
    return random.choice(choices)


# -- system calls: each is a method of the disk, in place of that of `os` ----------------------


def _open(self, path, flags, mode=0o777, **more):
    found = self._ours(path)
    if found is None:
        return self.real["open"](path, flags, mode, **more)
    if flags & os.O_CREAT and found not in self.names:
        self._changes(grows=True)
        number = self.real["open"](path, flags, mode, **more)
        self.names[found] = _Node()
    else:
        if flags & os.O_TRUNC:
            self._changes()
            self.names[found].content = bytearray()
        number = self.real["open"](path, flags, mode, **more)
    self.opened[number] = found, self.names.get(found)
    return number


def _close(self, number):
    self.close(number)


def _write(self, number, content):
    if number not in self.opened:
        return self.real["write"](number, content)
    return self.write(number, content)


def _fsync(self, number):
    path, node = self.opened.get(number) or self.find(number)
    if path is None:
        self.real["fsync"](number)
        return
    self._changes()
    if node is not None:
        node.synced = bytes(node.content)
        return
    for name in {*self.names, *self.synced}:
        if os.path.dirname(name) == path:  # noqa: PTH120
            if name in self.names:
                self.synced[name] = self.names[name]
            else:
                del self.synced[name]


def _link(self, source, target, **more):
    if (to := self._ours(target)) is not None and to not in self.names:
        self._changes(grows=True)
        self.names[to] = self.names[self._ours(source)]
    self.real["link"](source, target, **more)


def _rename(self, source, target, **more):
    if (to := self._ours(target)) is not None:
        self._changes()
        self.names[to] = self.names.pop(self._ours(source))
    self.real["replace"](source, target, **more)


def _unlink(self, path, **more):
    if (found := self._ours(path)) is not None and found in self.names:
        self._changes()
        del self.names[found]
    self.real["unlink"](path, **more)


def _ftruncate(self, number, length):
    if number in self.opened:
        self._changes()
        del self.opened[number][1].content[length:]
    self.real["ftruncate"](number, length)


def _mkdir(self, path, mode=0o777, **more):
    if self._ours(path) is not None:
        self._changes(grows=True)
    self.real["mkdir"](path, mode, **more)


_CALLS = {
    "open": _open,
    "close": _close,
    "write": _write,
    "fsync": _fsync,
    "link": _link,
    "rename": _rename,
    "replace": _rename,
    "unlink": _unlink,
    "remove": _unlink,
    "mkdir": _mkdir,
    "ftruncate": _ftruncate,
}

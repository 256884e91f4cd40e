"""A template process, from which processors are forked: the application is imported once.

The parent, a host or an agent, sends a number and one end of a socket pair for each processor
to start; the fork serves that end. The template answers, and reports processors that ended,
with the messages below. It has no threads, so forking is safe.
"""

import ctypes
import os
import select
import signal
import socket
import sys

import msgspec

from sojourn.app.codec.schema_registry import outlast
from sojourn.files.logs import StampedLines
from sojourn.spark.processor.processor import Job, described, load, run
from sojourn.spark.wire.frames import framed

# The interval of checks for ended processors, while there are no requests.
_LOOK_S = 0.2
_PR_SET_PDEATHSIG = 1
# Only Linux has this call; elsewhere orphans end when they next use the closed socket.
_prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None


class Loaded(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """The first message of a template: its job is imported, or failed to."""

    error: str = ""
    """Empty if the job is imported."""


class Forked(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """The processor with this number was started."""

    number: int
    pid: int


class NotForked(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """The processor with this number could not be forked, for lack of resources."""

    number: int
    reason: str


class Ended(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """A child process ended."""

    pid: int
    reason: str


FromTemplate = Loaded | Forked | NotForked | Ended


def main(fd: int, parent: int, spec: str, argument: str) -> None:
    """Fork processors on request of process *parent*, over the socket *fd*, while it lives."""
    _die_with(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.stdout, sys.stderr = StampedLines(1), StampedLines(2)
    host = socket.socket(fileno=fd)
    try:
        job = outlast(lambda: load(spec, argument), _note)
    except (Exception, SystemExit) as raised:  # noqa: BLE001 - the user's module: anything
        error, traceback = described(raised)
        sys.stderr.write(f"{traceback}\n")
        host.sendall(framed(Loaded(error)))
        return
    host.sendall(framed(Loaded()))
    while True:
        readable, _, _ = select.select([host], [], [], _LOOK_S)
        if readable:
            asked, fds, _, _ = socket.recv_fds(host, 4, 1)
            if not asked:
                return
            host.sendall(framed(_forked(host, int.from_bytes(asked, "big"), fds, job)))
        _reap(host)


def _note(why: str) -> None:
    sys.stderr.write(f"{why}\n")


def _forked(host: socket.socket, number: int, fds: list[int], job: Job) -> Forked | NotForked:
    """Fork a processor if the system has the resources."""
    if not fds:  # the kernel drops descriptors beyond the limit of open files
        return NotForked(number, "could not be started: too many open files (ulimit -n)")
    with socket.socket(fileno=fds[0]) as end:
        try:
            return Forked(number, _fork(host, end, job))
        except OSError as error:
            return NotForked(number, f"could not be started: no process (ulimit -u): {error}")


def _fork(host: socket.socket, end: socket.socket, job: Job) -> int:
    template = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        _die_with(template)
        host.close()
        run(end, job)
        status = 0
    except (BrokenPipeError, ConnectionResetError):
        status = 0  # the parent has closed the connection
    except BaseException as raised:  # noqa: BLE001 - a function may raise anything
        sys.stderr.write(f"{described(raised)[1]}\n")
    finally:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, StampedLines):
                stream.end()
        os._exit(status)


def _reap(host: socket.socket) -> None:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        code = os.waitstatus_to_exitcode(status)
        reason = f"was killed by signal {-code}" if code < 0 else f"exited with status {code}"
        host.sendall(framed(Ended(pid, reason)))


def _die_with(parent: int) -> None:
    """Let the kernel kill this process when its *parent* ends."""
    if _prctl is not None:
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it has ended before the call
        os._exit(1)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:5])

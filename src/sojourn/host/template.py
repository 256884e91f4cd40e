"""A warm process that new processors are forked from: imports are paid for once.

The host sends one end of a socket pair for each processor that it wants; the fork serves it.
What became of those that ended is told to the host. It has no threads, so forking is safe.
"""

import os
import select
import signal
import socket
import sys

import msgspec

from sojourn.host.job import Job, load
from sojourn.host.messages import framed
from sojourn.host.processor import run

__all__ = ["Ended", "Forked", "FromTemplate", "Loaded", "main"]

# How often it looks for processors that ended, while nothing else happens.
_LOOK_S = 0.2


class Loaded(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """The job is imported; or why it is not."""

    error: str = ""


class Forked(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """A processor was started for the host's *number*."""

    number: int
    pid: int


class Ended(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """A processor ended."""

    pid: int
    reason: str


FromTemplate = Loaded | Forked | Ended


def main(fd: int, spec: str, argument: str) -> None:
    """Fork processors as the host at *fd* asks for them, until it is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    host = socket.socket(fileno=fd)
    try:
        job = load(spec, argument)
    except Exception as error:  # noqa: BLE001 - the user's module may raise anything
        host.sendall(framed(Loaded(f"{type(error).__name__}: {error}")))
        return
    host.sendall(framed(Loaded()))
    while True:
        readable, _, _ = select.select([host], [], [], _LOOK_S)
        if readable:
            asked, fds, _, _ = socket.recv_fds(host, 4, 1)
            if not asked:
                return
            pid = _fork(host, socket.socket(fileno=fds[0]), job)
            host.sendall(framed(Forked(int.from_bytes(asked, "big"), pid)))
        _reap(host)


def _fork(host: socket.socket, end: socket.socket, job: Job) -> int:
    pid = os.fork()
    if pid:
        end.close()
        return pid
    host.close()
    status = 1
    try:
        run(end, job)
        status = 0
    except (BrokenPipeError, ConnectionResetError):
        status = 0  # the host is gone
    except BaseException as error:  # noqa: BLE001 - set_up is the user's
        sys.stderr.write(f"set_up failed: {type(error).__name__}: {error}\n")
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
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
        reason = f"killed by signal {-code}" if code < 0 else f"ended with status {code}"
        host.sendall(framed(Ended(pid, reason)))


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:4])

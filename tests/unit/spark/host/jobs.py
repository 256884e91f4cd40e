"""Jobs for hosts under test."""

import os
import signal
import time
from pathlib import Path

from sojourn.spark.wire.processor import OutputRecord


class Shout:
    """Sends its record on in capitals; some words make it misbehave."""

    def __init__(self, argument):
        self._argument = argument
        self._ready = False

    def set_up(self):
        if self._argument == "never":
            raise RuntimeError("no model to be found")
        if self._argument == "hangs":
            time.sleep(600)
        self._ready = True

    def tear_down(self):
        self._ready = False

    def __call__(self, record):
        assert self._ready
        word = record.payload.decode()
        if word == "raise":
            raise ValueError("a bad word")
        if word == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if word.startswith("print"):
            print("x" * int(word.removeprefix("print")))  # noqa: T201 - as functions do
        if word.startswith("wait"):
            time.sleep(float(word.removeprefix("wait")))
        while word.startswith("gate") and not Path(word.removeprefix("gate")).exists():
            time.sleep(0.01)
        yield OutputRecord("out", f"{word.upper()} {os.getpid()}".encode())


def shout(argument):
    return Shout(argument)


def starved(argument):
    """Return the same in a system that has no room for processes until there is a file."""
    fork = os.fork

    def limited():
        if not Path(argument).exists():
            raise BlockingIOError(11, "Resource temporarily unavailable")
        return fork()

    os.fork = limited
    return Shout("")


def few(argument):
    """Return the same in a system that lets *argument* processes be started at a time."""
    fork, wait, running = os.fork, os.waitpid, set()

    def limited():
        if len(running) >= int(argument):
            raise BlockingIOError(11, "Resource temporarily unavailable")
        if pid := fork():
            running.add(pid)
        return pid

    def reaped(*given):
        pid, status = wait(*given)
        running.discard(pid)
        return pid, status

    os.fork, os.waitpid = limited, reaped
    return Shout(argument)

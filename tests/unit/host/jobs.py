"""Jobs for hosts under test."""

import os
import signal
import time

from sojourn.host.messages import Output


class Shout:
    """Sends its record on in capitals; some words make it misbehave."""

    def __init__(self, argument):
        self._argument = argument
        self._ready = False

    def set_up(self):
        if self._argument == "never":
            raise RuntimeError("no model to be found")
        self._ready = True

    def __call__(self, record):
        assert self._ready
        word = record.payload.decode()
        if word == "raise":
            raise ValueError("a bad word")
        if word == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if word.startswith("wait"):
            time.sleep(float(word.removeprefix("wait")))
        yield Output("out", f"{word.upper()} {os.getpid()}".encode())


def shout(argument):
    return Shout(argument)

"""Relays that come to a host and go, on real sockets."""

import asyncio
import socket
from pathlib import Path

import pytest

from sojourn.spark.host.relay_sessions import RelaySessions
from sojourn.spark.host.relays import Relays
from sojourn.spark.wire.frames import framed
from sojourn.spark.wire.host_settings import HostSettings
from sojourn.spark.wire.relay import AllRead, RelayHello, RowsMessage

DEADLINE_S = 20.0
HELLO = RelayHello("run", 0, 0)


class Sessions(RelaySessions):
    """Notes what relays say, and when they leave; raises *error* when one says anything."""

    def __init__(self, error=None):
        settings = HostSettings(
            name="part", operators={}, readers={}, folder=Path(), cuts=Path()
        )
        elsewhere = dict.fromkeys(("files", "held", "controller"))
        super().__init__(settings, None, None, relays=Relays(), **elsewhere)
        self.said, self.left, self._error = [], asyncio.Event(), error

    def relay_said(self, _relay, message):
        if self._error is not None:
            raise self._error
        self.said.append(message)

    def relay_left(self, _relay):
        self.left.set()


def played(content, *, far, error=None):
    """Return what a host hears of a relay that says *content* and leaves, and its errors."""

    async def play():
        reported, sessions = [], Sessions(error)
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: reported.append(context["exception"]))
        ours, theirs = socket.socketpair()
        with theirs:
            if far:
                serving = asyncio.create_task(
                    sessions.far(*await asyncio.open_unix_connection(sock=ours))
                )
            else:
                await loop.create_connection(sessions.near, sock=ours)
            theirs.sendall(content)
            if error is None:
                theirs.shutdown(socket.SHUT_WR)
            async with asyncio.timeout(DEADLINE_S):
                await sessions.left.wait()
                if far:
                    await serving
        return sessions.said, reported

    return asyncio.run(play())


both = pytest.mark.parametrize("far", [False, True])


@both
def test_what_a_relay_says_is_heard_until_it_leaves(far):
    said = [HELLO, RowsMessage([]), AllRead()]
    assert played(b"".join(map(framed, said)), far=far) == ([HELLO, AllRead()], [])


@both
def test_what_is_no_message_ends_the_connection_alone(far):
    assert played(framed(HELLO) + b"\0\0\0\2no", far=far) == ([], [])


@both
def test_an_error_is_reported_before_the_relay_counts_as_gone(far):
    error = OSError("no such file")
    assert played(framed(HELLO), far=far, error=error) == ([], [error])


def test_a_connection_that_is_reset_is_the_end_of_its_relay():
    async def play():
        sessions, reader = Sessions(), asyncio.StreamReader()
        ours, theirs = socket.socketpair()
        _, writer = await asyncio.open_unix_connection(sock=ours)
        reader.set_exception(ConnectionResetError())
        with theirs:
            await sessions.far(reader, writer)
        assert sessions.left.is_set()

    asyncio.run(play())

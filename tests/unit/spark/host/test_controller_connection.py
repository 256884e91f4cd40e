"""A host and its controller, over a real socket."""

import asyncio
import socket

import msgspec
import pytest

from sojourn.spark.host.controller_connection import ControllerConnection
from sojourn.spark.wire.controller import Ask, Broken, Bye, Drain
from sojourn.spark.wire.frames import Frames, framed

DEADLINE_S = 20.0


def talked(path, controller, host):
    """Let both talk at a socket, and return what the host returns."""

    async def both():
        done = asyncio.Event()

        async def serve(reader, writer):
            await controller(reader, writer)
            writer.close()
            done.set()

        server = await asyncio.start_unix_server(serve, path)
        line = ControllerConnection()
        await line.open(path)
        try:
            return await asyncio.wait_for(host(line), DEADLINE_S)
        finally:
            await line.close()
            await asyncio.wait_for(done.wait(), DEADLINE_S)
            server.close()

    return asyncio.run(both())


@pytest.mark.parametrize("in_order", [True, False])
def test_what_is_said_is_obeyed_until_the_end(tmp_path, in_order):
    heard = []

    async def controller(_reader, writer):
        said = [Ask(), Drain()] + [Bye()] * in_order
        writer.write(b"".join(map(framed, said)))
        await writer.drain()

    async def host(line):
        return await line.obeyed(heard.append)

    assert talked(tmp_path / "c", controller, host) is in_order
    assert heard == [Ask(), Drain()]


def test_what_a_host_says_arrives(tmp_path):
    bodies = []

    async def controller(reader, _writer):
        frames = Frames()
        while not bodies:
            bodies.extend(map(bytes, frames.fed(await reader.read(1 << 16))))

    async def host(line):
        line.tell(Broken("part", "the disk is full", "token"))
        return await line.obeyed(lambda _message: None)

    assert talked(tmp_path / "c", controller, host) is False
    assert msgspec.msgpack.decode(bodies[0], type=Broken).reason == "the disk is full"


def test_a_controller_that_does_not_read_is_behind(tmp_path):
    async def controller(reader, writer):
        sock = writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 12)
        reader._transport.pause_reading()  # noqa: SLF001 - as one that is stopped does not read
        await asyncio.sleep(0.2)
        reader._transport.resume_reading()  # noqa: SLF001

    async def host(line):
        before = line.is_behind
        for _ in range(4):
            line.tell(Broken("part", "x" * (1 << 20), "token"))
        return before, line.is_behind

    assert talked(tmp_path / "c", controller, host) == (False, True)


def test_before_there_is_a_connection_nobody_hears():
    line = ControllerConnection()
    line.tell(Ask())
    assert line.is_behind
    assert asyncio.run(line.obeyed(lambda _message: None)) is False
    asyncio.run(line.close())


def test_last_messages_arrive_at_a_controller_that_is_sending(tmp_path):
    """A failed send would have it drop what it has not read."""
    bodies = []

    async def controller(reader, writer):
        await asyncio.sleep(0.2)  # the host has ended meanwhile
        frames = Frames()
        for _ in range(10):
            writer.write(framed(Ask()))
            await asyncio.sleep(0.01)
        while some := await reader.read(1 << 16):
            bodies.extend(map(bytes, frames.fed(some)))

    async def host(line):
        for number in range(3):  # more than a paused reader has read ahead
            line.tell(Broken("part", f"{number}" * (1 << 20), "token"))

    talked(tmp_path / "c", controller, host)
    assert len(bodies) == 3

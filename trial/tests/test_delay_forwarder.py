import asyncio
import socket
import time

import pytest

from sojourn.errors import BadInput
from sojourn_trial.cluster.delay_forwarder import DelayForwarder

DELAY_S = 0.02
CLOSED = (asyncio.IncompleteReadError, ConnectionResetError)


async def echo(reader, writer):
    while chunk := await reader.read(65536):
        writer.write(chunk)
        await writer.drain()
    writer.write(b"the end")
    writer.close()


def through(talk, answer=echo, delay_s=DELAY_S):
    """Return what *talk* returns, with a connection through a forwarder to *answer*."""

    async def run():
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        async with (
            server,
            DelayForwarder(server.sockets[0].getsockname(), delay_s=delay_s) as forwarder,
        ):
            reader, writer = await asyncio.open_connection(*forwarder.address)
            try:
                return await asyncio.wait_for(talk(reader, writer), 60)
            finally:
                writer.transport.abort()

    return asyncio.run(run())


def test_both_directions_are_delayed():
    async def talk(reader, writer):
        since_s = time.monotonic()
        writer.write(b"x")
        assert await reader.readexactly(1) == b"x"
        return time.monotonic() - since_s

    assert through(talk) >= 2 * DELAY_S


def test_order_holds_and_nothing_is_lost_or_waits_for_an_answer():
    sent = b"".join(number.to_bytes(4) for number in range(200_000))

    async def talk(reader, writer):
        async def send():
            for start in range(0, len(sent), 999):
                writer.write(sent[start : start + 999])
                await writer.drain()

        _, received = await asyncio.gather(send(), reader.readexactly(len(sent)))
        return received

    assert through(talk) == sent


def test_one_side_may_end_while_the_other_still_sends():
    async def talk(reader, writer):
        writer.write(b"x")
        writer.write_eof()
        return await reader.read()

    assert through(talk) == b"xthe end"


def test_a_connection_to_nobody_is_closed():
    async def run():
        with socket.create_server(("127.0.0.1", 0)) as nobody:
            target = nobody.getsockname()
        async with DelayForwarder(target, delay_s=0) as forwarder:
            reader, writer = await asyncio.open_connection(*forwarder.address)
            try:
                with pytest.raises(CLOSED):
                    await asyncio.wait_for(reader.readexactly(1), 60)
            finally:
                writer.transport.abort()

    asyncio.run(run())


def test_leaving_it_closes_what_is_open():
    async def run():
        server = await asyncio.start_server(echo, "127.0.0.1", 0)
        async with server:
            target = server.sockets[0].getsockname()
            async with DelayForwarder(target, delay_s=0) as forwarder:
                reader, writer = await asyncio.open_connection(*forwarder.address)
                writer.write(b"x")
                assert await reader.readexactly(1) == b"x"
            try:
                with pytest.raises(CLOSED):
                    await asyncio.wait_for(reader.readexactly(1), 60)
            finally:
                writer.transport.abort()

    asyncio.run(run())


@pytest.mark.parametrize("delay_s", [-1, 61, float("nan")])
def test_a_delay_that_cannot_be_is_refused(delay_s):
    with pytest.raises(BadInput, match="write 0 to 60 seconds"):
        DelayForwarder(("127.0.0.1", 1), delay_s=delay_s)


def test_without_listening_there_is_no_address():
    with pytest.raises(BadInput, match="enter it first"):
        _ = DelayForwarder(("127.0.0.1", 1), delay_s=0).address

"""Who may talk to whom: both ends over a real connection, honest or not."""

import asyncio

import pytest

from sojourn.errors import EngineError
from sojourn.spark.wire.handshake import admit, introduce

SECRET = b"hush"


def met(host, peer):
    """Return what both ends of a connection come to."""

    async def meet():
        came = asyncio.get_running_loop().create_future()

        async def serve(reader, writer):
            came.set_result(await host(reader, writer))
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        try:
            return await asyncio.gather(came, peer(reader, writer), return_exceptions=True)
        finally:
            writer.close()
            server.close()

    return asyncio.run(meet())


def host(secret=SECRET, **patience):
    return lambda reader, writer: admit(reader, writer, secret, **patience)


def peer(purpose="agent", secret=SECRET):
    return lambda reader, writer: introduce(reader, writer, secret, purpose)


@pytest.mark.parametrize("purpose", ["agent", "relay"])
def test_who_knows_the_secret_is_admitted_for_what_it_came_for(purpose):
    assert met(host(), peer(purpose)) == [purpose, None]


def test_a_purpose_that_nobody_has_is_refused_whoever_comes():
    assert met(host(), peer("spy"))[0] is None


def test_who_does_not_know_it_is_refused():
    admitted, error = met(host(), peer(secret=b"guess"))
    assert admitted is None
    with pytest.raises(EngineError, match="did not accept the secret of this run"):
        raise error


def test_who_says_nothing_or_hangs_up_is_refused():

    async def silent(reader, _writer):
        await reader.read()

    async def brief(_reader, writer):
        writer.close()

    assert met(host(within_s=0.1), silent)[0] is None
    assert met(host(), brief)[0] is None


@pytest.mark.parametrize(
    ("greeting", "reply", "problem"),
    [
        (b"HTTP/1.1" + bytes(32), b"", "is not a host of this application"),
        (b"sojourn1" + bytes(32), bytes(32), "does not know the secret of this run"),
        (b"sojourn1", b"", "did not accept the secret of this run"),
    ],
)
def test_a_stranger_in_place_of_a_host_is_found_out(greeting, reply, problem):
    async def stranger(_reader, writer):
        writer.write(greeting + reply)
        await writer.drain()

    _, error = met(stranger, peer())
    with pytest.raises(EngineError, match=problem):
        raise error

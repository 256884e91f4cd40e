"""What relays are told, and when: on real sockets."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec

from sojourn.spark.host.batch.host_log import Leaving
from sojourn.spark.host.desk.instructions import HandOver
from sojourn.spark.host.relays import Relays
from sojourn.spark.wire.event_loop import FrameConnection
from sojourn.spark.wire.frames import Frames
from sojourn.spark.wire.record import Record, Root
from sojourn.spark.wire.relay import (
    DeadResult,
    Failed,
    Finished,
    Grant,
    Results,
    ToRelay,
)

decode = msgspec.msgpack.Decoder(ToRelay).decode


def over(relay, name):
    root = Root(("words", 0), 7)
    return HandOver(relay, Leaving(root, Record(name, b"payload")), 5)


@asynccontextmanager
async def connected(relays: Relays) -> AsyncIterator[tuple[int, asyncio.StreamReader]]:
    ours, theirs = socket.socketpair()
    _, writer = await asyncio.open_unix_connection(sock=ours)
    reader, other = await asyncio.open_unix_connection(sock=theirs)
    try:
        yield relays.came(writer), reader
    finally:
        relays.close()
        other.close()
        await asyncio.gather(writer.wait_closed(), other.wait_closed())


async def told(reader, *, messages):
    """Return so many messages."""
    frames, found = Frames(), []
    while len(found) < messages:
        some = await asyncio.wait_for(reader.read(1 << 16), 10.0)
        assert some, f"only {found} came"
        found += [decode(body) for body in frames.fed(some)]
    return found


def names(results: Results):
    return [record.name for record, _, _ in results.records]


def test_two_results_leave_at_once_and_those_of_the_next_moment_together():
    async def play():
        relays = Relays()
        async with connected(relays) as (relay, reader):
            for name in ("a", "b", "c", "d"):
                relays.hand_over(over(relay, name))
                relays.grant(relay, 1)
                relays.send()
            return await told(reader, messages=6)

    found = asyncio.run(play())
    assert found[::2] == [Grant(1), Grant(1), Grant(2)]
    assert [names(results) for results in found[1::2]] == [["a"], ["b"], ["c", "d"]]


def test_the_end_comes_after_all_results_and_waits_for_nothing():
    async def play():
        relays = Relays()
        async with connected(relays) as (relay, reader):
            for name in ("a", "b", "c"):
                relays.hand_over(over(relay, name))
                relays.send()
            relays.say(relay, Finished())
            return await told(reader, messages=4)

    *results, end = asyncio.run(play())
    assert [names(some) for some in results] == [["a"], ["b"], ["c"]]
    assert end == Finished()


def test_dead_letters_leave_beside_results():
    letter = DeadResult("parse", Record("a", b"?"), "it is no number", "", 1)

    async def play():
        relays = Relays()
        async with connected(relays) as (relay, reader):
            relays.hand_over(HandOver(relay, Leaving(Root(("words", 0), 7), None, letter), 5))
            relays.send()
            return await told(reader, messages=1)

    (results,) = asyncio.run(play())
    assert results.records == []
    assert [(found.operator, root.offset, floor) for found, root, floor in results.letters] == [
        ("parse", 7, 5)
    ]


def test_what_was_for_a_relay_that_is_gone_is_dropped():
    async def play():
        relays = Relays()
        async with connected(relays) as (gone, _), connected(relays) as (relay, reader):
            for number in (gone, relay):
                relays.hand_over(over(number, f"for {number}"))
            relays.left(gone)
            relays.send()
            return await told(reader, messages=1)

    (results,) = asyncio.run(play())
    assert names(results) == ["for 2"]


def test_all_can_be_told_the_same():
    async def play():
        relays = Relays()
        async with connected(relays) as (_, first), connected(relays) as (_, second):
            relays.say_to_all(Failed("no"))
            return await told(first, messages=1) + await told(second, messages=1)

    assert asyncio.run(play()) == [Failed("no")] * 2


def test_a_relay_that_is_lost_hears_why_and_gets_nothing_more():
    async def play():
        relays = Relays()
        ours, theirs = socket.socketpair()
        connection = FrameConnection(lambda _: None)
        relay = relays.came(connection)
        await asyncio.get_running_loop().create_connection(lambda: connection, sock=ours)
        reader, writer = await asyncio.open_unix_connection(sock=theirs)
        relays.hand_over(over(relay, "a"))
        relays.grant(relay, 1)
        relays.drop(relay, "it was silent")
        relays.drop(relay, "it was silent")
        relays.say(relay, Finished())
        await asyncio.wait_for(connection.closed, 10.0)
        found = await told(reader, messages=1)
        assert await reader.read() == b""
        writer.close()
        return found

    assert asyncio.run(play()) == [Failed("it was silent")]

"""What a host says to the agent of a node, and knows of it: over a real connection."""

import asyncio
import time

import msgspec

from sojourn.spark.host.agent_connections import Connection
from sojourn.spark.wire.agent import AskClock, ClockIs, Said, ToAgent, Usage
from sojourn.spark.wire.frames import Frames
from sojourn.spark.wire.processor import Done, OutputRecord, Ready, Result
from sojourn.spark.wire.record import Record

DEADLINE_S = 20


def talked(work):
    """Return what *work* with a connection returns, and what the agent was told."""

    async def talk():
        heard, over = [], asyncio.Event()

        async def agent(reader, writer):
            frames = Frames()
            while some := await reader.read(1 << 16):
                heard.extend(msgspec.msgpack.decode(b, type=ToAgent) for b in frames.fed(some))
            writer.close()
            over.set()

        server = await asyncio.start_server(agent, "127.0.0.1", 0)
        _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        connection = Connection(writer, ["split"])
        try:
            return work(connection), heard
        finally:
            connection.close()
            connection.tell(AskClock(0.0))  # nobody hears that
            await asyncio.wait_for(over.wait(), DEADLINE_S)
            server.close()

    return asyncio.run(talk())


def test_what_is_said_is_counted_and_what_a_node_tells_is_known():
    def work(connection):
        before = connection.state
        connection.groups["split"].start(1)
        connection.groups["split"].give(1, [Record("id", b"a b", "lines")])
        connection.said(Said("split", 1, Ready(7)), 9)
        done = Done([Result([OutputRecord("words", b"a")])])
        connection.said(Said("split", 1, done), 50)
        connection.used(Usage({"split": {1: 1000}}, 70, 100))
        asked_s = time.time()
        connection.clock_is(ClockIs(asked_s, asked_s + 3600.0, asked_s + 3600.0))
        return before, connection.groups["split"].memory(), connection.state

    (before, memory, state), heard = talked(work)
    assert (before.round_trip_s, before.offset_s, before.used_bytes) == (None, None, None)
    assert memory == {1: 1000}
    assert (state.used_bytes, state.limit_bytes) == (70, 100)
    assert (list(state.to), state.back) == (["lines"], {"words": 50})
    assert state.to["lines"] > 3
    assert abs(state.offset_s - 3600.0) < 1.0
    assert [type(each).__name__ for each in heard] == ["Start", "Assign", "AskClock"]

"""What a host says to the agent of a node, and knows of it: over a real connection."""

import asyncio
import time
from random import Random

import msgspec
import pytest

from sojourn.spark.host.nodes.agent_connection import ClockOffset, Connection, Exchange
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


def exchange(at_s, *, offset_s, there_s=0.001, back_s=0.001, ours=0.0, theirs=0.0):
    """Return a question of *at_s* by the true time; clocks are set by so much on the way."""
    heard_s = at_s + there_s
    told_s = heard_s + 0.0005
    return Exchange(
        asked_s=at_s,
        heard_s=heard_s + offset_s,
        told_s=told_s + offset_s + theirs,
        came_s=told_s + back_s + ours,
    )


def clock_of(*exchanges):
    clock = ClockOffset()
    for each in exchanges:
        clock.seen(each)
    return clock


def test_nothing_is_known_before_the_first_answer():
    assert clock_of().best is None


@pytest.mark.parametrize("offset_s", [0.0, 3600.0, -0.02])
def test_if_both_ways_take_the_same_time_it_is_exact(offset_s):
    best = clock_of(exchange(100.0, offset_s=offset_s, there_s=0.2, back_s=0.2)).best
    assert best.offset_s == pytest.approx(offset_s)
    assert best.round_trip_s == pytest.approx(0.4)


def test_it_is_never_wrong_by_more_than_half_the_round_trip():
    """However long either way takes: a busy machine, a full connection."""
    chance, clock = Random(1), ClockOffset()
    for second in range(1000):
        there_s, back_s = chance.expovariate(100), chance.expovariate(2)
        clock.seen(exchange(float(second), offset_s=-7.0, there_s=there_s, back_s=back_s))
        assert abs(clock.best.offset_s + 7.0) <= clock.best.round_trip_s / 2 + 1e-9


def test_the_exchange_that_met_nobody_counts():
    slow = [exchange(float(s), offset_s=5.0, there_s=0.001, back_s=0.8) for s in range(3)]
    quick = exchange(3.0, offset_s=5.0)
    for clock in (clock_of(*slow, quick), clock_of(quick, *slow)):
        assert clock.best.offset_s == pytest.approx(5.0)
        assert clock.best.round_trip_s == pytest.approx(0.002)


def test_what_is_long_ago_does_not_count():
    """A way that has become longer is known as such, and a clock drifts."""
    quick = exchange(0.0, offset_s=5.0)
    clock = clock_of(quick, *(exchange(float(s), offset_s=5.0, back_s=0.1) for s in range(8)))
    assert clock.best.round_trip_s == pytest.approx(0.101)


@pytest.mark.parametrize("jump_s", [3600.0, -3600.0, 0.5, -0.01])
def test_after_a_clock_was_set_the_first_answer_tells_it(jump_s):
    before = [exchange(float(s), offset_s=1.0) for s in range(8)]
    slower = exchange(9.0, offset_s=1.0 + jump_s, there_s=0.002, back_s=0.002)
    assert clock_of(*before, slower).best.offset_s == pytest.approx(1.0 + jump_s)


@pytest.mark.parametrize(
    "jumps", [{"ours": 60.0}, {"ours": -60.0}, {"theirs": 60.0}, {"theirs": -60.0}]
)
def test_a_clock_that_is_set_during_an_exchange_spoils_no_other(jumps):
    """The next answer is right, whichever clock was set, and in which direction."""
    offset_s = 1.0 + jumps.get("theirs", 0.0) - jumps.get("ours", 0.0)
    clock = clock_of(exchange(0.0, offset_s=1.0), exchange(1.0, offset_s=1.0, **jumps))
    assert abs(clock.best.offset_s - 1.0) < 0.001
    clock.seen(exchange(2.0, offset_s=offset_s))
    assert clock.best.offset_s == pytest.approx(offset_s)

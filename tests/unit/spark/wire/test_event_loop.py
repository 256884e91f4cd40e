"""Connections to processes of the same machine, on real sockets; tasks and timers."""

import asyncio
import socket
from contextlib import contextmanager
from time import time

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from sojourn.spark.wire.event_loop import Alarm, BackgroundTasks, FrameConnection
from sojourn.spark.wire.frames import Frames, framed
from sojourn.spark.wire.processor import NotReady, Ready

DEADLINE_S = 10.0


@contextmanager
def peers():
    ours, theirs = socket.socketpair()
    theirs.settimeout(DEADLINE_S)
    with theirs:
        yield ours, theirs


async def connected(end, heard):
    connection = FrameConnection(heard)
    await asyncio.get_running_loop().create_connection(lambda: connection, sock=end)
    return connection


def play(conversation):
    with peers() as (ours, theirs):
        asyncio.run(asyncio.wait_for(conversation(ours, theirs), DEADLINE_S))


def bodies(*pids):
    return [body for pid in pids for body in Frames().fed(framed(Ready(pid)))]


@given(
    sizes=st.lists(st.integers(0, 40), max_size=12),
    ends=st.lists(st.integers(0, 600), max_size=12),
)
def test_frames_are_the_same_however_they_are_divided_on_the_way(sizes, ends):
    """Sockets keep no boundaries: a chunk may end in a length, a frame, or between two."""
    sent = [NotReady("x" * size, "") for size in sizes]
    stream, frames, heard, start = b"".join(map(framed, sent)), Frames(), [], 0
    for end in [*sorted(ends), len(stream)]:
        heard += frames.fed(memoryview(stream)[start:end])
        start = max(start, end)
    assert [msgspec.msgpack.decode(body, type=NotReady) for body in heard] == sent


def test_frames_that_came_together_are_heard_together_and_a_part_of_one_when_it_is_whole():
    async def conversation(ours, theirs):
        heard = asyncio.Queue()
        connection = await connected(ours, heard.put_nowait)
        last = framed(Ready(3))
        theirs.sendall(framed(Ready(1)) + framed(Ready(2)) + last[:2])
        assert await heard.get() == bodies(1, 2)
        theirs.sendall(last[2:])
        assert await heard.get() == bodies(3)
        connection.close()
        await connection.closed

    play(conversation)


def test_a_frame_that_is_larger_than_what_is_read_at_once_is_heard_whole():
    async def conversation(ours, theirs):
        large = (1 << 20).to_bytes(4, "big") + bytes(1 << 20)
        heard = asyncio.Queue()
        connection = await connected(ours, heard.put_nowait)
        await asyncio.to_thread(theirs.sendall, large)
        assert await heard.get() == [large[4:]]
        connection.close()
        await connection.closed

    play(conversation)


def test_what_is_written_is_sent_and_closed_is_when_the_other_has_left():
    async def conversation(ours, theirs):
        connection = FrameConnection(lambda _: None)
        connection.write(b"nobody is there yet")
        assert connection.is_closing()
        await asyncio.get_running_loop().create_connection(lambda: connection, sock=ours)
        assert not connection.is_closing()
        connection.write(b"hello")
        assert theirs.recv(100) == b"hello"
        theirs.shutdown(socket.SHUT_RDWR)
        await connection.closed
        assert connection.is_closing()

    play(conversation)


def test_all_that_was_written_is_sent_before_it_is_closed():
    async def conversation(ours, theirs):
        connection = await connected(ours, lambda _: None)
        connection.write(bytes(1 << 20))
        connection.close()
        came = 0
        while some := await asyncio.to_thread(theirs.recv, 1 << 16):
            came += len(some)
        assert came == 1 << 20
        await connection.closed

    play(conversation)


def test_an_error_of_who_hears_is_reported_and_not_only_the_end_of_a_connection():
    """asyncio would close the connection, and say nothing of an `OSError`."""

    async def conversation(ours, theirs):
        reported, error = [], OSError("no such file")
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: reported.append(context["exception"]))

        def heard(_bodies):
            raise error

        connection = await connected(ours, heard)
        theirs.sendall(framed(Ready(1)))
        await connection.closed
        assert reported == [error]

    play(conversation)


# -- tasks and timers ------------------------------------------------------------------------


def test_an_error_is_reported_at_once_and_others_run_until_they_are_cancelled():
    async def play():
        reported, error, ended = [], ValueError("no"), asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: reported.append(context["exception"]))
        tasks = BackgroundTasks()

        async def fails():
            raise error

        async def waits():
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

        tasks.spawn(waits())
        tasks.spawn(fails())
        await asyncio.sleep(0)
        assert reported == [error]
        assert not ended.is_set()
        tasks.spawn(waits())
        tasks.cancel()  # the last has not begun
        await asyncio.wait_for(ended.wait(), 10.0)
        assert reported == [error]

    asyncio.run(play())


def test_it_rings_at_once_if_the_time_is_over_and_can_be_set_again():
    async def rings():
        rung = asyncio.Queue()
        alarm = Alarm(lambda: rung.put_nowait("now"))
        for _ in range(2):
            alarm.set(time() - 60.0)
            await asyncio.wait_for(rung.get(), DEADLINE_S)
        alarm.set(None)
        return rung.qsize()

    assert asyncio.run(rings()) == 0


def test_only_what_it_was_set_to_last_rings():
    async def rings():
        rung = asyncio.Queue()
        alarm = Alarm(lambda: rung.put_nowait("now"))
        alarm.set(time() + 0.05)
        alarm.set(None)
        alarm.set(later := time() + 0.1)
        alarm.set(later)
        await asyncio.wait_for(rung.get(), DEADLINE_S)
        late_s = time() - later
        alarm.set(time() + 60.0)
        await asyncio.sleep(0.1)
        return rung.qsize(), late_s

    others, late_s = asyncio.run(rings())
    assert others == 0
    assert late_s > -0.01  # not that of the first

"""Work that nobody awaits: its errors are seen, and it ends when it is told to."""

import asyncio
from time import time

from sojourn.spark.wire.background import Alarm, BackgroundTasks


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


DEADLINE_S = 20.0


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

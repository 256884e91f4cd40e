"""Work that nobody awaits: its errors are seen, and it ends when it is told to."""

import asyncio

from sojourn.spark.wire.background import BackgroundTasks


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

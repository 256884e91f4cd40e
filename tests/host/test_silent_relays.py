"""Tasks of Spark that go silent: their machine has vanished, and no connection has ended."""

import asyncio
import signal
import time

import pytest

from host.hosting import Relay, application
from sojourn.spark.wire.relay import AllRead

TIMEOUT_S = 2.0
LOST = "a task of its batch was lost, so the whole batch runs again"
PART = {"relay_timeout_s": TIMEOUT_S}


def test_a_batch_with_a_silent_task_runs_again_as_a_whole(tmp_path):
    """What the silent one was handed may never be written: the next attempt gets it again."""

    async def work():
        async with application(tmp_path, tasks=2, part=PART) as app:
            silent = await Relay.of(app)
            other = await Relay.of(app, partition=1)
            silent.bring(["fine"])
            await silent.hears(lambda: silent.records)
            silent.fall_silent()
            await other.hears(lambda: other.failed)
            assert other.failed == LOST
            await silent.hears(lambda: silent.failed)
            assert silent.failed == "its host had no heartbeat for 2 s"
            silent.bring(["late"], first=1)
            silent.say(AllRead())
            again = await Relay.of(app, run="second")
            await again.hears(lambda: again.records)
            another = await Relay.of(app, run="second", partition=1)
            for relay in (again, another):
                relay.say(AllRead())
            await again.hears(lambda: False)
            assert (again.finished, again.text(0), list(again.records)) == (True, "FINE", [0])
            assert (await app.part_report()).state.positions == {"in": {0: 1}}

    asyncio.run(work())
    log = (tmp_path / "shout.log").read_text()
    assert "no heartbeat from a task of batch 0 for 2 s: it runs again" in log


def test_a_second_task_for_a_partition_fails_the_batch(tmp_path):
    async def work():
        async with application(tmp_path, tasks=2) as app:
            relays = [await Relay.of(app), await Relay.of(app, partition=1)]
            relays[0].bring(["fine"])
            await relays[0].hears(lambda: relays[0].records)
            relays[0].fall_silent()
            relays.append(await Relay.of(app))
            for relay in relays:
                await relay.hears(lambda: False)
                assert relay.failed == LOST
            again = await Relay.of(app, run="second")
            await again.hears(lambda: again.records)
            assert again.text(0) == "FINE"

    asyncio.run(work())


def test_a_host_that_was_suspended_loses_no_task(tmp_path):
    """It has heard nobody for that time; their heartbeats are in its buffers."""

    async def work():
        async with application(tmp_path, tasks=2, part=PART) as app:
            relays = [await Relay.of(app, partition=n) for n in range(2)]
            relays[0].bring(["fine"])
            await relays[0].hears(lambda: relays[0].records)
            app.process.send_signal(signal.SIGSTOP)
            try:
                await asyncio.sleep(2 * TIMEOUT_S)  # the time is the point
            finally:
                app.process.send_signal(signal.SIGCONT)
            relays[0].bring(["fine"], first=1)
            await relays[0].hears(lambda: 1 in relays[0].records)
            for relay in relays:
                relay.say(AllRead())
            for relay in relays:
                await relay.hears(lambda: False)
                assert relay.finished

    asyncio.run(work())


@pytest.mark.parametrize("waits", ["for input", "with a result"])
def test_a_task_that_waits_for_spark_is_not_silent(host, waits):
    """Spark may bring nothing, and take no result, for any time."""
    query = host(relay_timeout_s=TIMEOUT_S)

    def pause():
        time.sleep(2 * TIMEOUT_S)  # the time is the point

    def brought():
        yield query.row(b'{"line": "one"}')
        if waits == "for input":
            pause()
        yield query.row(b'{"line": "two"}')

    rows = query.rows_of(brought(), pause=pause if waits == "with a result" else None)
    assert len(rows) == 2

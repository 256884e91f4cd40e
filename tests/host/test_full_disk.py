"""A real host on a real disk that somebody else fills."""

import asyncio
import json
from collections import Counter

import pytest

from host.hosting import Relay, application, eventually
from host.test_disk_order import COUNTED, bring
from small_disk import mounted
from sojourn.spark.host.batch.cut_store import CutFiles
from sojourn.spark.host.state.expiry import unstamped
from sojourn.spark.processor.state_codec import StateCodec
from sojourn.spark.wire.controller import Broken
from sojourn.spark.wire.relay import AllRead
from unit.spark.host.application import counted

WORDS = [f"word{number % 17}" for number in range(600)]


@pytest.fixture
def disk(tmp_path):
    with mounted(tmp_path / "disk", 4 << 20) as disk:
        yield disk


def on(disk, **settings):
    return {**COUNTED, "cuts": str(disk.folder / "cuts"), **settings}


def kept(folder, batch):
    """Return the numbers of the cut of a batch, by word."""
    files, codec = CutFiles(folder / "cuts", readonly=True), StateCodec("count", counted.state)
    states = files.state.states("counted", files.load(files.last(batch)).changed)
    found = {json.loads(key)[0]: codec.decode(unstamped(state))["n"] for key, state in states}
    files.state.close()
    return found


def numbers(*relays):
    """Return the numbers that left for each word, each once."""
    found = {}
    for relay in relays:
        for records in relay.records.values():
            told = json.loads(records[0].payload)
            found.setdefault(told["line"], set()).add(told["n"])
    return found


def broken(app):
    return [message.reason for message in app.heard if isinstance(message, Broken)]


async def waits(app):
    """Return when the host says that it waits for room."""
    return await app.until_part(lambda tally: tally.state.disk_full)


async def settled(app, relay):
    """Return the number of answers once no more arrive, on a connection of their own."""
    answered = -1
    while answered != relay.answered:
        answered = relay.answered
        for _ in range(10):
            await app.part_report()
    return answered


@pytest.mark.parametrize("leave_bytes", [0, 4096, 40_000])
def test_a_host_waits_for_room_and_loses_nothing(tmp_path, disk, leave_bytes):
    """The same process goes on, and what it had decided leaves once it is in the log."""

    async def work():
        async with application(tmp_path, part=on(disk)) as app:
            relay = await Relay.of(app)
            bring(relay, WORDS[:100])
            await relay.hears(lambda: relay.answered == 100)
            disk.fill(leave_bytes=leave_bytes)
            bring(relay, WORDS[100:], first=100)
            told = await waits(app)
            assert "No space left on device; make room in" in told.state.disk_full
            left = await settled(app, relay)  # results that left before the disk was full
            for _ in range(20):  # it answers, and nothing leaves
                await app.part_report()
            assert (relay.answered, relay.over) == (left, False)
            disk.free()
            await relay.hears(lambda: relay.answered == len(WORDS))
            await relay.end()
            assert (relay.finished, relay.answered, broken(app)) == (True, len(WORDS), [])
            assert all(len(records) == 1 for records in relay.records.values())
            assert not (await app.part_report()).state.disk_full
            # and a batch after that
            after = await Relay.of(app, batch=1)
            bring(after, WORDS, first=len(WORDS))
            await after.hears(lambda: after.answered == len(WORDS))
            await after.end()
            assert after.finished
            exact = {word: 2 * number for word, number in Counter(WORDS).items()}
            assert kept(disk.folder, 1) == exact
            assert numbers(relay, after) == {w: set(range(1, n + 1)) for w, n in exact.items()}

    asyncio.run(work())
    log = (tmp_path / "shout.log").read_text()
    assert log.count("waits up to 900 s for disk space") >= 1
    assert log.count("disk space is available again after") == log.count(
        "waits up to 900 s for disk space"
    )


def test_a_host_that_is_killed_while_it_waits_is_followed_by_one_that_waits(tmp_path, disk):
    """The next one finds an entry that was begun, and no room for a file of its own."""

    async def work():
        async with application(tmp_path, part=on(disk)) as app:
            relay = await Relay.of(app)
            bring(relay, WORDS[:100])
            await relay.hears(lambda: relay.answered == 100)
            disk.fill()
            bring(relay, WORDS[100:], first=100)
            await waits(app)
        async with application(tmp_path, part=on(disk)) as app:
            relay = await Relay.of(app, run="another")
            bring(relay, WORDS)
            await waits(app)
            disk.free()
            await relay.hears(lambda: relay.answered == len(WORDS))
            await relay.end()
            assert (relay.finished, relay.answered) == (True, len(WORDS))
            assert kept(disk.folder, 0) == Counter(WORDS)

    asyncio.run(work())


@pytest.mark.parametrize("operation", ["cut", "merge"])
def test_what_is_written_in_the_background_waits_for_room(tmp_path, disk, operation):
    async def work():
        async with application(tmp_path, part=on(disk, kept_batches=0)) as app:
            relay = await Relay.of(app)
            bring(relay, WORDS)
            await relay.hears(lambda: relay.answered == len(WORDS))
            if operation == "cut":
                (disk.folder / "cuts" / "cuts").mkdir(mode=0o700)
                disk.fill(leave_bytes=4096)  # for a new file of the log
                relay.say(AllRead())
                await waits(app)
                assert not relay.finished
                disk.free()
            await relay.end()
            assert relay.finished
            if operation == "merge":
                disk.fill()
                after = await Relay.of(app, batch=1)
                await waits(app)
                disk.free()
                await after.end()
                assert after.finished
            await app.until_part(lambda tally: not tally.state.disk_full)
            assert (kept(disk.folder, 0), broken(app)) == (Counter(WORDS), [])

    asyncio.run(work())


def test_a_host_whose_patience_ends_says_what_it_waited_for(tmp_path, disk):
    async def work():
        async with application(tmp_path, part=on(disk, disk_patience_s=0.5)) as app:
            relay = await Relay.of(app)
            bring(relay, WORDS[:10])
            await relay.hears(lambda: relay.answered == 10)
            disk.fill()
            bring(relay, WORDS, first=10)
            await eventually(lambda: app.process.poll() is not None)
            await eventually(lambda: broken(app))
            (reason,) = broken(app)
            assert "no disk space after 0.5 s: the log in" in reason
            assert "No space left on device; make room in" in reason

    asyncio.run(work())

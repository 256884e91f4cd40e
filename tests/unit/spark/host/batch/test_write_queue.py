"""Writes of a host happen one at a time, in order; events wait while its log has no room."""

import asyncio
import threading

import pytest

from sojourn.errors import DiskFull, EngineError
from sojourn.spark.host.batch.write_queue import HeldEvents, Room, WriteQueue

FULL = DiskFull("the log", "/disk")


class Disk:
    """A disk whose writes wait until they are let through, one by one."""

    def __init__(self):
        self.begun, self.done, self.failures, self.log = [], [], [], []
        self.now_s = 0.0
        self.room = Room(60.0, lambda: self.now_s, self.log.append)
        self._through = threading.Semaphore(0)

    def write_on_full(self, name, times):
        """Return a write that finds room when it was tried so many times without."""

        def write():
            self.begun.append(name)
            if self.begun.count(name) <= times:
                raise DiskFull(name, "/disk")
            self.done.append(name)

        return write

    def write(self, name, *, fails=False):
        def write():
            self.begun.append(name)
            self._through.acquire(timeout=60)  # a test that fails lets nothing through
            if fails:
                raise EngineError("the disk is gone")
            self.done.append(name)

        return write

    def let_through(self, number=1):
        self._through.release(number)


async def until(found):
    async with asyncio.timeout(60):
        while not found():  # noqa: ASYNC110 - a thread does it
            await asyncio.sleep(0.001)


def test_a_write_begins_when_the_one_before_it_is_done():
    async def work():
        disk = Disk()
        queue, told = WriteQueue(disk.failures.append, disk.room), []
        for name in "abc":
            queue.put(name, disk.write(name), lambda name=name: told.append((name, *disk.done)))
        await until(lambda: disk.begun == ["a"])
        disk.let_through(2)
        await until(lambda: len(told) == 2)
        queue.put("d", disk.write("d"), lambda: told.append(("d", *disk.done)))
        disk.let_through(2)
        await until(lambda: len(told) == 4)
        assert told == [("a", *"a"), ("b", *"ab"), ("c", *"abc"), ("d", *"abcd")]
        await queue.close()

    asyncio.run(work())


def test_nothing_is_written_after_a_write_that_failed():
    async def work():
        disk = Disk()
        queue, told = WriteQueue(disk.failures.append, disk.room), []
        queue.put("the cut", disk.write("a", fails=True), lambda: told.append("a"))
        queue.put("the state", disk.write("b"), lambda: told.append("b"))
        disk.let_through(2)
        await until(lambda: disk.failures)
        queue.put("the state", disk.write("c"), lambda: told.append("c"))
        await queue.close()
        assert disk.failures == ["the cut: the disk is gone"]
        assert (disk.begun, told) == (["a"], [])

    asyncio.run(work())


def test_the_end_waits_for_the_write_under_way_and_for_no_other():
    """Files are closed after it: a thread that still wrote would write to closed ones."""

    async def work():
        disk = Disk()
        queue, told = WriteQueue(disk.failures.append, disk.room), []
        queue.put("a", disk.write("a"), lambda: told.append("a"))
        queue.put("b", disk.write("b"), lambda: told.append("b"))
        await until(lambda: disk.begun == ["a"])
        closing = asyncio.create_task(queue.close())
        await asyncio.sleep(0)
        assert not closing.done()
        disk.let_through(2)
        await closing
        assert (disk.done, told) == (["a"], [])
        queue.put("c", disk.write("c"), lambda: told.append("c"))
        await queue.close()
        assert disk.begun == ["a"]

    asyncio.run(work())


def test_an_unexpected_error_is_reported_and_ends_the_writes():
    async def work():
        reported, error = [], KeyError("no such cut")
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: reported.append(context["exception"]))
        disk = Disk()
        queue = WriteQueue(disk.failures.append, disk.room)

        def then():
            raise error

        disk.let_through(2)
        queue.put("the cut", disk.write("a"), then)
        queue.put("the state", disk.write("b"), lambda: None)
        await until(lambda: reported)
        await queue.close()
        assert (reported, disk.failures, disk.done) == ([error], [], ["a"])

    asyncio.run(work())


def test_a_write_without_room_is_tried_again_and_the_others_wait_behind_it():
    async def work():
        disk = Disk()
        queue, told = WriteQueue(disk.failures.append, disk.room), []
        queue.put("a", disk.write_on_full("a", times=2), lambda: told.append("a"))
        queue.put("b", disk.write_on_full("b", times=0), lambda: told.append("b"))
        await until(lambda: len(told) == 2)
        assert (disk.begun, disk.done, told) == (["a", "a", "a", "b"], ["a", "b"], ["a", "b"])
        assert [line.partition(";")[0] for line in disk.log] == [
            "a cannot be written: No space left on device",
            "disk space is available again after 0.0 s",
        ]
        assert (disk.failures, disk.room.lack) == ([], "")
        await queue.close()

    asyncio.run(work())


def test_a_write_that_finds_no_room_in_time_fails_with_the_reason():
    async def work():
        disk = Disk()
        queue = WriteQueue(disk.failures.append, disk.room)
        queue.put("the cut", disk.write_on_full("a", times=9), lambda: None)
        await until(lambda: disk.room.lack)
        disk.now_s = 61.0
        await until(lambda: disk.failures)
        (reason,) = disk.failures
        assert reason.startswith(
            "the cut: no disk space after 60 s: a cannot be written: No space"
        )
        await queue.close()

    asyncio.run(work())


def test_the_end_does_not_wait_for_room():
    async def work():
        disk = Disk()
        queue = WriteQueue(disk.failures.append, disk.room)
        queue.put("a", disk.write_on_full("a", times=10**9), lambda: None)
        await until(lambda: disk.room.lack)
        await queue.close()
        assert (disk.done, disk.failures) == ([], [])

    asyncio.run(work())


# -- held events ------------------------------------------------------------------------------


class LogDisk:
    def __init__(self, patience_s=60.0):
        self.now_s, self.full, self.log, self.happened = 0.0, False, [], []
        self.room = Room(patience_s, lambda: self.now_s, self.log.append)
        self.held = HeldEvents(self.write, self.room)

    def write(self):
        if self.full:
            raise FULL

    def event(self, name):
        return lambda: self.happened.append(name)

    def hold(self, name):
        """Let an event be decided whose log there is no room for."""
        self.full = True
        self.held.hold(FULL, self.event(name))


def test_events_happen_at_once_while_there_is_room():
    disk = LogDisk()
    disk.held.put(disk.event("a"))
    disk.held.put_next(disk.event("b"))
    assert (disk.happened, disk.held.waiting, disk.log) == (["a", "b"], False, [])


def test_what_was_held_happens_first_and_then_the_others_in_order():
    disk = LogDisk()
    disk.hold("decided")
    disk.held.put_next(disk.event("its consequence"))
    for name in "ab":
        disk.held.put(disk.event(name))
    disk.held.retry()
    assert (disk.happened, disk.held.waiting) == ([], True)
    disk.full, disk.now_s = False, 7.0
    disk.held.retry()
    assert disk.happened == ["decided", "its consequence", "a", "b"]
    assert not disk.held.waiting
    assert disk.log == [
        f"{FULL}; the host waits up to 60 s for disk space",
        "disk space is available again after 7.0 s; the host resumes",
    ]


def test_an_event_that_needs_room_itself_happens_again():
    disk = LogDisk()

    def begins():
        disk.write()
        disk.happened.append("begun")

    disk.full = True
    disk.held.put(begins)
    disk.held.put(disk.event("a"))
    assert disk.held.waiting
    disk.full = False
    disk.held.retry()
    assert disk.happened == ["begun", "a"]


def test_those_behind_an_event_that_is_held_go_on_waiting():
    """The disk may be full again before all have happened."""
    disk = LogDisk()
    disk.hold("a")
    disk.held.put(lambda: disk.hold("b"))
    disk.held.put(disk.event("c"))
    disk.full = False
    disk.held.retry()
    assert (disk.happened, disk.held.waiting, disk.room.lack) == (["a"], True, str(FULL))
    disk.full = False
    disk.held.retry()
    assert (disk.happened, disk.room.lack) == (["a", "b", "c"], "")


def test_patience_ends():
    disk = LogDisk(patience_s=60.0)
    disk.hold("a")
    disk.now_s = 60.0
    disk.held.retry()
    disk.now_s = 60.1
    with pytest.raises(EngineError, match="no disk space after 60 s: the log cannot be"):
        disk.held.retry()
    assert disk.happened == []

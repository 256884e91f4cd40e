"""While a log cannot be written, what happens waits in order."""

import pytest

from sojourn.errors import DiskFull, EngineError
from sojourn.spark.host.batch.write_queue import Room
from sojourn.spark.host.held_events import HeldEvents

FULL = DiskFull("the log", "/disk")


class Disk:
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
    disk = Disk()
    disk.held.put(disk.event("a"))
    disk.held.put_next(disk.event("b"))
    assert (disk.happened, disk.held.waiting, disk.log) == (["a", "b"], False, [])


def test_what_was_held_happens_first_and_then_the_others_in_order():
    disk = Disk()
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
    disk = Disk()

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
    disk = Disk()
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
    disk = Disk(patience_s=60.0)
    disk.hold("a")
    disk.now_s = 60.0
    disk.held.retry()
    disk.now_s = 60.1
    with pytest.raises(EngineError, match="no disk space after 60 s: the log cannot be"):
        disk.held.retry()
    assert disk.happened == []

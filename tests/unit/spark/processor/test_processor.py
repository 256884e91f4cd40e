"""A processor by itself: what it answers to what it is given."""

import signal
import socket
import time

import msgspec
import pytest

from sojourn.errors import RegistryAway
from sojourn.spark.processor.operator_job import of_application
from sojourn.spark.processor.processor import described, run
from sojourn.spark.wire.frames import Frames, framed
from sojourn.spark.wire.processor import (
    Assignment,
    Done,
    FromProcessor,
    NotReady,
    OutputRecord,
    Ready,
    Waits,
)
from sojourn.spark.wire.record import Record

_decode = msgspec.msgpack.Decoder(FromProcessor).decode


class Job:
    """Does as the payload says."""

    def __init__(self, *, ready=True):
        self.served, self._ready = [], ready

    def set_up(self):
        if not self._ready:
            raise SystemExit("no licence")

    def tear_down(self):
        self.served.append("torn down")

    def __call__(self, record):
        self.served.append(int(record.name))
        match record.payload:
            case b"raise":
                raise ValueError("no")
            case b"exit":
                raise SystemExit(3)
            case b"patient" if self.served.count(int(record.name)) < 3:
                raise RegistryAway("r", "no", 60.0)
            case b"impatient":
                raise RegistryAway("r", "no", 0.0)
            case b"slow":
                time.sleep(0.01)
        yield OutputRecord("out", record.payload)


@pytest.fixture(autouse=True)
def _ctrl_c():
    """Give back what a processor takes."""
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


def said(job, *groups):
    """Return what a processor says that is given groups of records."""
    host, processor = socket.socketpair()
    with host, processor:
        for records in groups:
            host.sendall(framed(Assignment(records)))
        host.shutdown(socket.SHUT_WR)
        run(processor, job)
        processor.shutdown(socket.SHUT_WR)
        frames, heard = Frames(), []
        while some := host.recv(65536):
            heard += map(_decode, frames.fed(some))
    return heard


def record(number, payload=b"fine", key=None):
    return Record(str(number), payload, key=key)


def results(heard):
    return [result for done in heard if isinstance(done, Done) for result in done.results]


def test_those_behind_one_of_their_key_that_failed_are_left():
    job = Job()
    group = [record(0, b"raise", "a"), record(1, key="b"), record(2, key="a"), record(3)]
    told = results(said(job, group))
    assert [(bool(r.error), r.skipped, len(r.outputs)) for r in told] == [
        (True, False, 0),
        (False, False, 1),
        (False, True, 0),
        (False, False, 1),
    ]
    assert job.served == [0, 1, 3, "torn down"]


def test_what_failed_before_holds_up_nothing_that_is_given_later():
    told = results(said(Job(), [record(0, b"raise", "a")], [record(1, key="a")]))
    assert [result.skipped for result in told] == [False, False]


def test_slow_ones_are_told_one_by_one_and_no_answer_waits_for_the_next():
    heard = said(Job(), [record(number, b"slow") for number in range(3)])
    assert isinstance(heard[0], Ready)
    assert [len(done.results) for done in heard[1:]] == [1, 1, 1]


def test_a_function_that_ends_its_process_is_one_that_raises():
    (first, second) = results(said(Job(), [record(0, b"exit"), record(1)]))
    assert first.error == "SystemExit: 3"
    assert "raise SystemExit(3)" in first.traceback
    assert not second.error


def test_a_record_waits_for_the_schema_registry_and_those_before_it_do_not():
    heard = said(Job(), [record(0), record(1, b"patient"), record(2)])[1:]
    assert [type(told) for told in heard[:4]] == [Done, Waits, Waits, Done]
    assert "does not answer: no" in heard[1].reason
    assert [bool(result.error) for result in results(heard)] == [False, False, False]


def test_one_for_which_nobody_has_patience_fails():
    (failed,) = results(said(Job(), [record(0, b"impatient")]))
    assert failed.error.startswith("the schema registry at r does not answer: no")


def test_a_set_up_that_raises_is_said():
    (told,) = said(Job(ready=False), [record(0)])
    assert isinstance(told, NotReady)
    assert told.error == "SystemExit: no licence"
    assert "raise SystemExit" in told.traceback


def raised(function, *arguments):
    try:
        function(*arguments)
    except Exception as error:  # noqa: BLE001 - whatever it is
        return described(error)
    raise AssertionError("nothing was raised")


def divide():
    return 1 / 0


def chained():
    try:
        divide()
    except ZeroDivisionError as error:
        raise ValueError("no") from error


def test_the_traceback_is_that_of_the_users_code():
    error, traceback = raised(divide)
    assert error == "ZeroDivisionError: division by zero"
    assert traceback.splitlines()[-1] == error
    assert "return 1 / 0" in traceback
    split = of_application("unit.spark.host.application:app split")
    error, traceback = raised(lambda: list(split(Record("id", b"no JSON", "lines"))))
    assert "BadRecord" in error
    assert "payload.py" not in traceback  # our own frames say nothing to its author


def test_what_it_came_of_is_told_too():
    _, traceback = raised(chained)
    assert "ZeroDivisionError" in traceback
    assert traceback.endswith("ValueError: no")


def test_what_is_too_long_is_cut_and_the_end_is_there():
    def speak():
        raise ValueError("x" * 100_000 + "!")

    error, traceback = raised(speak)
    assert (len(error), len(traceback)) == (2 << 10, 8 << 10)
    assert traceback.endswith("x!")
    assert error.startswith("ValueError: x")

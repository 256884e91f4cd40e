"""A processor: the job of an operator, and the loop that gives it records from the host."""

import os
import signal
import socket
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from time import perf_counter, process_time
from traceback import StackSummary, TracebackException
from typing import Protocol, cast

import msgspec

from sojourn.app.codec.schema_registry import outlast
from sojourn.errors import BadInput, RegistryAway
from sojourn.spark.wire.frames import Frames, framed
from sojourn.spark.wire.processor import (
    Assignment,
    Done,
    NotReady,
    OutputRecord,
    Ready,
    Result,
    Waits,
)
from sojourn.spark.wire.record import Record

_CHUNK = 1 << 16
# Results of several records are sent together if they are faster than this. Slower ones are
# sent alone: each has its own time limit, and none waits for the next.
_TOGETHER_S = 0.001
_decode = msgspec.msgpack.Decoder(Assignment).decode
_OURS = str(Path(__file__).parents[1])
# Both are sent with a record, and an exception may have a text of any length.
_MOST_ERROR, _MOST_TRACEBACK = 2 << 10, 8 << 10


@dataclass(slots=True)
class Lent:
    """The state of a record's key, which the job may replace."""

    state: bytes
    """Empty if the key has no state."""
    reminders: list[tuple[float, str]] = field(default_factory=list)
    """Reminders that the job requests: delay in seconds, and note."""


class Job(Protocol):
    """The work of one operator.

    `set_up` is called once in each processor, before its first record; then the job is called
    with each record, and the state of its key if the operator keeps any, and returns its
    outputs; `tear_down` is called when the processor ends cleanly. All of them may raise any
    exception.
    """

    def set_up(self) -> None:
        """Prepare this processor: load a model, open a connection."""
        ...

    def tear_down(self) -> None:
        """Release what `set_up` has opened."""
        ...

    def __call__(self, record: Record, lent: Lent | None = None, /) -> Iterable[OutputRecord]:
        """Return the outputs for *record*."""
        ...


def load(spec: str, argument: str = "") -> Job:
    """Return the job that the factory *spec*, `package.module:factory`, makes of *argument*.

    Raise `BadInput` if the factory cannot be imported.
    """
    module, _, name = spec.partition(":")
    try:
        factory = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise BadInput(
            f"{spec!r} cannot be loaded: {error}; write package.module:name, importable here"
        ) from error
    return cast("Job", factory(argument))


def run(host: socket.socket, job: Job) -> None:
    """Set up *job*, and process the records from *host* until it closes the connection."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the application to handle
    try:
        job.set_up()
    except (Exception, SystemExit) as raised:  # noqa: BLE001 - user code may raise anything
        host.sendall(framed(NotReady(*described(raised))))
        return
    host.sendall(framed(Ready(os.getpid())))
    frames = Frames()
    while some := host.recv(_CHUNK):
        for body in frames.fed(some):
            _serve(host, job, _decode(body))
    job.tear_down()


def _serve(host: socket.socket, job: Job, assigned: Assignment) -> None:
    """Process records in order, but skip those with a key that failed earlier among them.

    The host gives skipped records again later, so the records of a key stay in order.
    """
    states = None if assigned.states is None else dict(assigned.states)
    failed: set[str] = set()
    results: list[Result] = []
    told_s = perf_counter()
    for record in assigned.records:
        if record.key is not None and record.key in failed:
            results.append(Result([], skipped=True))
            continue
        try:
            result = _served(job, record, states)
        except RegistryAway as away:
            if results:  # finished results must not wait for the registry
                host.sendall(framed(Done(results)))
                results = []
            host.sendall(framed(Waits(str(away))))
            result = _outlasted(host, job, record, states)
        results.append(result)
        if result.error and record.key is not None:
            failed.add(record.key)
        now_s = perf_counter()
        if now_s - told_s > _TOGETHER_S:
            host.sendall(framed(Done(results)))
            results, told_s = [], now_s
    if results:
        host.sendall(framed(Done(results)))


def _outlasted(
    host: socket.socket, job: Job, record: Record, states: dict[str, bytes] | None
) -> Result:
    """Process a record once the schema registry answers; report the wait to the host."""
    try:
        return outlast(
            lambda: _served(job, record, states),
            lambda reason: host.sendall(framed(Waits(reason))),
        )
    except RegistryAway as away:
        return Result([], str(away))


def _served(job: Job, record: Record, states: dict[str, bytes] | None) -> Result:
    began_s, cpu_s = perf_counter(), process_time()
    changed: bytes | None = None
    reminders: list[tuple[float, str]] = []
    try:
        if states is None or record.key is None:
            outputs = list(job(record))
        else:
            lent = Lent(states.get(record.key, b""))
            outputs = list(job(record, lent))
            if lent.state != states.get(record.key, b""):
                changed = states[record.key] = lent.state
            reminders = lent.reminders
        error, traceback = "", ""
    except RegistryAway:
        raise
    except (Exception, SystemExit) as raised:  # noqa: BLE001 - user code may raise anything
        outputs, (error, traceback) = [], described(raised)
    took_s, cpu_s = perf_counter() - began_s, process_time() - cpu_s
    return Result(outputs, error, took_s, cpu_s, traceback, state=changed, reminders=reminders)


def described(raised: BaseException) -> tuple[str, str]:
    """Return the error as short text, and its traceback without frames of our own."""
    told = TracebackException.from_exception(raised)
    error = _sound("".join(told.format_exception_only()).strip())
    _leave_out_ours(told)
    traceback = _sound("".join(told.format()).rstrip())
    return _cut(error, _MOST_ERROR), _cut(traceback, _MOST_TRACEBACK)


def _sound(text: str) -> str:
    """Escape lone surrogates, which UTF-8 cannot encode."""
    return text.encode(errors="backslashreplace").decode()


def _leave_out_ours(told: TracebackException) -> None:
    """Remove our own frames from an exception and all exceptions in its chain."""
    seen: list[TracebackException] = []
    waiting: list[TracebackException | None] = [told]
    while waiting:
        one = waiting.pop()
        if one is None or any(one is other for other in seen):
            continue
        seen.append(one)
        theirs = [frame for frame in one.stack if not frame.filename.startswith(_OURS)]
        one.stack = StackSummary.from_list(theirs)
        waiting += [one.__cause__, one.__context__, *(one.exceptions or ())]


def _cut(text: str, most: int) -> str:
    """Return *text* without its middle if it is long; most is kept of its end.

    >>> _cut("a" * 30, 20)
    'aa ... aaaaaaaaaaaaa'
    """
    if len(text) <= most:
        return text
    head = max(0, (most - 5) // 6)
    return f"{text[:head]} ... {text[len(text) - (most - 5 - head) :]}"

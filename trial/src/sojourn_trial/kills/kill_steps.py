"""Steps of a host at which it kills itself on order, patched into its functions at its start.

The product has no code for this. Processes with the folder `at_start` on their path wrap their
functions before anything else (`sitecustomize`). They read orders from a folder with one file
per part: the step, how often it must be reached, and the victim. A process renames the file
before it executes the order, so that each order is executed once.
"""

import json
import os
import signal
import sys
import threading
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

FOLDER = "KILL_STEPS"
"""The environment variable with the folder of orders."""


@dataclass(frozen=True)
class Order:
    """Kill *whom* (host, driver or everything) when *step* is reached *times* times."""

    step: str
    times: int = 1
    whom: str = "host"

    def give(self, folder, part):
        """Write the order for the host of *part*."""
        new = folder / f"{part}.new"
        new.write_text(json.dumps(asdict(self)))
        new.replace(folder / part)


def is_open(folder, part):
    """Return whether the order of a part has not been executed yet."""
    return (folder / part).exists()


class Steps:
    """The order of this process, and the number of times that its step was reached."""

    def __init__(self, path):
        self._path, self._written = path, ""
        self._times = 0
        self._lock = threading.Lock()

    def reached(self, step):
        """Execute the order, if it is due at this step."""
        if (whom := self.taken(step)) is not None:
            _kill(whom)

    def taken(self, step):
        """Take the order if it is due at this step, and return its victim; otherwise None."""
        with self._lock, suppress(FileNotFoundError):
            written = self._path.read_text()
            if written != self._written:
                self._written, self._times = written, 0
            order = Order(**json.loads(written))
            if order.step != step:
                return None
            self._times += 1
            if self._times < order.times:
                return None
            self._path.rename(self._path.with_suffix(".followed"))
            return order.whom
        return None


def _kill(whom):
    driver = psutil.Process(os.getppid())
    if whom == "everything":
        # Java first, because it commits
        children = sorted(driver.children(recursive=True), key=lambda p: p.name() != "java")
        for process in (child for child in children if child.pid != os.getpid()):
            with suppress(psutil.NoSuchProcess):
                process.kill()
    if whom != "host":
        driver.kill()
    if whom != "driver":
        os.kill(os.getpid(), signal.SIGKILL)


def put_into_driver():
    """Remove the backoff and the limit of restarts, because kills are frequent."""
    from sojourn.spark.driver.restarts import Restarts  # noqa: PLC0415 - in this process alone

    def delay_s(self, _now_s, _place=None):
        self.number += 1
        return 0.1

    Restarts.delay_s = delay_s


def put_into_host():
    """Patch all steps into the functions of a host."""
    part = sys.orig_argv[-1]
    steps = Steps(Path(os.environ[FOLDER]) / part)
    _log(steps)
    _answers(steps)
    _cuts(steps)
    _merges(steps)
    _reminders(steps)
    _recovery(steps)


def _wrap(owner, name):
    """Return a decorator that replaces a function of a class or module.

    The replacement receives the original function as its first argument.
    """

    def put(outer):
        inner = getattr(owner, name)
        setattr(owner, name, lambda *given, **named: outer(inner, *given, **named))

    return put


def _around(steps, owner, name, before=None, after=None):
    """Add a step before and after a function of a class or module."""

    @_wrap(owner, name)
    def wrapped(inner, *given, **named):
        if before is not None:
            steps.reached(before)
        returned = inner(*given, **named)
        if after is not None:
            steps.reached(after)
        return returned


# -- the log and answers -------------------------------------------------------------------


def _log(steps):
    from sojourn.spark.host.batch.host_log import HostLog  # noqa: PLC0415
    from sojourn.spark.host.batch.log_files import LogFiles  # noqa: PLC0415

    @_wrap(LogFiles, "append")
    def append(inner, files, number, content):
        if (whom := steps.taken("log: torn entry")) is not None:
            inner(files, number, content[: len(content) // 2])
            _kill(whom)
        inner(files, number, content)

    @_wrap(HostLog, "_write")
    def write(inner, log, group):
        if group:
            steps.reached("log: before an entry")
        inner(log, group)
        if group:
            steps.reached("log: after an entry")
        if step := _of_reminders(group):
            steps.reached(step)

    _around(steps, HostLog, "_begin", "log: before its file of a cut", "log: after its file")
    _around(steps, LogFiles, "remove", "log: before it is shortened", "log: while shortened")


def _of_reminders(group):
    """Return the step of a group of log entries about reminders; "" for other groups."""
    from sojourn.spark.host.batch.host_log import Entered, Leaving  # noqa: PLC0415

    for entry in group:
        if isinstance(entry, Leaving) and "@reminders" in entry.root.partition[0]:
            return "reminder: its answer is logged"
        if isinstance(entry, Entered) and "@reminders" in entry.record.record.stream:
            return "reminder: fired and logged"
    return ""


def _answers(steps):
    from sojourn.spark.host.relays import Relays  # noqa: PLC0415
    from sojourn.spark.wire.relay import Finished, Results  # noqa: PLC0415

    @_wrap(Relays, "_write")
    def write(inner, relays, relay, message):
        results, finished = isinstance(message, Results), isinstance(message, Finished)
        if results:
            steps.reached("answer: before results are handed over")
        if finished:
            steps.reached("commit: before the relay is told")
        inner(relays, relay, message)
        if results:
            steps.reached("answer: after results are handed over")
        if finished:
            steps.reached("commit: the relay is told")


# -- cuts ----------------------------------------------------------------------------------


def _cuts(steps):
    from sojourn.spark.host.batch import cut_store  # noqa: PLC0415
    from sojourn.spark.host.batch.cut_store import CutFiles  # noqa: PLC0415
    from sojourn.spark.host.state import state_files  # noqa: PLC0415

    _around(steps, CutFiles, "save", "cut: before it is written", "commit: manifest written")
    _around(steps, CutFiles, "drop_before", "cut: before old ones go", "cut: old ones are gone")
    writing = threading.local()  # the kind of durable file that this thread writes
    for module in (cut_store, state_files):

        @_wrap(module, "write_checked")
        def write_checked(inner, path, body):
            kinds = {"cuts": "manifest", "changed": "states"}
            writing.kind = kinds.get(path.parent.name)
            inner(path, body)
            writing.kind = None

    @_wrap(os, "fsync")
    def fsync(inner, descriptor):
        kind = getattr(writing, "kind", None)
        # files are written under a name that ends in .new, synced, and renamed
        if kind is None or Path(f"/proc/self/fd/{descriptor}").readlink().suffix != ".new":
            inner(descriptor)
            return
        if (whom := steps.taken(f"{kind}: torn")) is not None:
            os.ftruncate(descriptor, os.fstat(descriptor).st_size // 2)
            _kill(whom)
        steps.reached(f"{kind}: before the sync")
        inner(descriptor)
        steps.reached(f"{kind}: synced, before the rename")

    @_wrap(Path, "replace")
    def replace(inner, path, target):
        replaced = inner(path, target)
        if (kind := getattr(writing, "kind", None)) is not None:
            steps.reached(f"{kind}: renamed, its folder is not synced")
        return replaced


# -- states, reminders and recovery --------------------------------------------------------


def _merges(steps):
    from sojourn.spark.host.state import state_files  # noqa: PLC0415
    from sojourn.spark.host.state.state_files import StateFiles  # noqa: PLC0415

    merging = threading.local()  # whether this thread is inside `merge`

    @_wrap(StateFiles, "merge")
    def merge(inner, files, what):
        steps.reached("merge: before")
        merging.now = True
        inner(files, what)
        merging.now = False
        steps.reached("merge: after")

    @_wrap(Path, "unlink")
    def unlink(inner, path, **named):
        if getattr(merging, "now", False):
            steps.reached("merge: in the store, before files are removed")
        inner(path, **named)

    _around(steps, state_files, "_put", after="merge: inside the transaction")


def _reminders(steps):
    from sojourn.spark.host.state.reminders import Reminders  # noqa: PLC0415

    @_wrap(Reminders, "due")
    def due(inner, reminders):
        for each in inner(reminders):
            steps.reached("reminder: due")
            yield each
            steps.reached("reminder: fired, not logged")


def _recovery(steps):
    from sojourn.spark.host.batch.ledger import Ledger  # noqa: PLC0415

    _around(steps, Ledger, "_restore", after="recovery: the cut is loaded")
    _around(steps, Ledger, "_replay", "recovery: while the log is replayed")
    _around(steps, Ledger, "_recovered", "recovery: before", "recovery: all is restored")

"""A host of its own process, with a controller and tasks of Spark that tests play."""

import asyncio
import json
import os
import resource
import subprocess
import sys
import time
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import msgspec

from sojourn.decide.plan import HERE
from sojourn.spark.wire.controller import (
    Ask,
    AskTasks,
    FromHost,
    HostHello,
    PlaceProcessors,
    Reached,
    Report,
    TasksAre,
)
from sojourn.spark.wire.frames import Frames, framed
from sojourn.spark.wire.record import Record
from sojourn.spark.wire.relay import (
    AllRead,
    Failed,
    Finished,
    Grant,
    Heartbeat,
    RelayHello,
    Results,
    Row,
    RowsMessage,
    ToRelay,
)

TESTS = Path(__file__).parent.parent
DEADLINE_S = 60
_to_relay = msgspec.msgpack.Decoder(ToRelay).decode
_from_host = msgspec.msgpack.Decoder(FromHost).decode


class Application:
    """A controller with one host, which is told that a batch has so many tasks."""

    def __init__(self, folder, process, server, tasks=1):
        self.folder, self.process, self.server = folder, process, server
        self.tasks, self.relays = tasks, []
        self.heard, self._writer = [], None
        self.log = folder / "shout.log"
        self._news = asyncio.Event()

    async def connected(self, reader, writer):
        self._writer, frames = writer, Frames()
        with suppress(asyncio.CancelledError, ConnectionError):
            while some := await reader.read(65536):
                for body in frames.fed(some):
                    self.heard.append(_from_host(body))
                    self._news.set()
                    if isinstance(self.heard[-1], AskTasks):
                        writer.write(framed(TasksAre(self.heard[-1].stage, self.tasks)))
        writer.close()

    async def hears(self, found):
        """Return the first message that *found* is true of."""
        async with asyncio.timeout(DEADLINE_S):
            while True:
                for message in self.heard:
                    if found(message):
                        return message
                self._news.clear()
                await self._news.wait()

    async def scale(self, k):
        await self.hears(lambda m: isinstance(m, HostHello))
        self.heard = [m for m in self.heard if not isinstance(m, Reached)]
        self.wants(k)
        await self.hears(lambda m: isinstance(m, Reached) and m.processors == k)
        return await self.report()

    async def until(self, found):
        """Return the first report of the operator that *found* is true of."""
        async with asyncio.timeout(DEADLINE_S):
            while not found(tally := await self.report()):  # noqa: ASYNC110 - it is asked
                await asyncio.sleep(0.05)
            return tally

    async def until_part(self, found):
        """Return the first report of the part that *found* is true of."""
        async with asyncio.timeout(DEADLINE_S):
            while not found(tally := await self.part_report()):  # noqa: ASYNC110 - as above
                await asyncio.sleep(0.01)
            return tally

    def wants(self, k):
        self.say(PlaceProcessors("shout", {HERE: k}))

    def say(self, message):
        self._writer.write(framed(message))

    async def part_report(self):
        """Ask for a report, and return it."""
        self.heard = [m for m in self.heard if not isinstance(m, Report)]
        self.say(Ask())
        return (await self.hears(lambda m: isinstance(m, Report))).tally

    async def report(self):
        """Ask for a report, and return what it says of the operator."""
        return (await self.part_report()).operators["shout"]

    def leave(self):
        self._writer.close()


def part_of(folder, **settings):
    """Return the settings of a host that runs one operator of *settings*."""
    return {
        "name": "part",
        "operators": {"shout": {"job": "unit.spark.host.jobs:shout", **settings}},
        "readers": {"in": ["shout"]},
        "leaving": ["out"],
        "folder": str(folder),
        "cuts": str(folder / "cuts"),
    }


@asynccontextmanager
async def application(
    tmp_path, *, files=None, tasks=1, part=None, shell=False, path=(), **settings
):
    """Run a host, by a *shell* or not, that may open so many *files*, and end it.

    It finds modules in the folders *path* before all others.
    """
    controller = tmp_path / "controller.sock"
    controller.unlink(missing_ok=True)
    made = Application(tmp_path, None, None, tasks)
    made.server = await asyncio.start_unix_server(made.connected, controller)
    told = {**part_of(tmp_path, **settings), **(part or {}), "controller": str(controller)}

    def limit():
        if files is not None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))

    # one that stays, and that the host is the child of
    by = ["sh", "-c", 'exec 3<&0; "$@" <&3 & wait', "sh"] if shell else []
    with made.log.open("ab") as log:
        made.process = subprocess.Popen(  # noqa: ASYNC220 - it returns at once
            [*by, sys.executable, "-m", "sojourn.spark.host", told["name"]],
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join([*map(str, path), str(TESTS), *sys.path]),
            },
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            preexec_fn=limit,  # noqa: PLW1509 - there is one thread
        )
    with made.process.stdin as stdin:
        stdin.write(json.dumps(told).encode())
    try:
        yield made
    finally:
        for relay in made.relays:
            relay.close()
        made.process.kill()
        made.process.wait()
        made.server.close()


async def eventually(found):
    """Return what *found* returns once it is true."""
    async with asyncio.timeout(DEADLINE_S):
        while not (result := found()):  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.02)
        return result


class Relay:
    """A task of a batch, as a host sees it: what it was handed, by the offset of the root."""

    def __init__(self, reader, writer):
        self.credit, self.brought, self.records, self.letters = 0, 0, {}, {}
        self.failed, self.finished, self.gone = "", False, False
        self._writer, self._news = writer, asyncio.Event()
        self._reading = asyncio.create_task(self._read(reader))
        self._beating = asyncio.create_task(self._beat())

    @classmethod
    async def of(cls, app, *, run="run", batch=0, partition=0, query="", stage=None):
        """Begin a task of a batch, for a partition of what it reads."""
        await app.hears(lambda m: isinstance(m, HostHello))
        relay = cls(*await asyncio.open_unix_connection(app.folder / "relay.sock"))
        app.relays.append(relay)
        stage = batch if stage is None else stage
        relay.say(RelayHello(run, batch, stage, partition, query))
        return relay

    async def _beat(self):
        while not self.gone:
            await asyncio.sleep(1.0)
            self.say(Heartbeat())

    def fall_silent(self):
        """Say nothing more by itself, as if the machine had vanished."""
        self._beating.cancel()

    async def _read(self, reader):
        frames = Frames()
        with suppress(ConnectionError):
            while some := await reader.read(65536):
                for body in frames.fed(some):
                    self._heard(_to_relay(body))
                    self._news.set()
        self.gone = True
        self._news.set()

    def _heard(self, message):
        match message:
            case Grant(number):
                self.credit += number
            case Results(records, letters):
                for record, root, _ in records:
                    self.records.setdefault(root.offset, []).append(record)
                for letter, root, _ in letters:
                    self.letters[root.offset] = letter
            case Failed(reason):
                self.failed = reason
            case Finished():
                self.finished = True

    def say(self, message):
        self._writer.write(framed(message))

    def bring(self, words, *, first=0, stream="in", names=None):
        """Hand over records, whatever the credit."""
        for offset, word in enumerate(words, first):
            name = f"id-{offset}" if names is None else names[offset]
            record = Record(
                name,
                word.encode(),
                stream,
                written_s=time.time(),
                root=name,
                traced=int(offset == 7),
                position=f"{stream}/0/{offset}",
            )
            self.say(RowsMessage([Row((stream, 0), offset, record)]))
            self.credit -= 1
            self.brought += 1

    async def bring_on(self, word):
        """Hand over records as the credit allows, each the *word* of its offset, for ever."""
        while True:
            await self.hears(lambda: self.credit > 0)
            self.bring([word(self.brought)], first=self.brought)

    async def hears(self, found):
        """Return when *found* is true, or there is nothing more to hear."""
        async with asyncio.timeout(DEADLINE_S):
            while not (self.over or found()):
                self._news.clear()
                await self._news.wait()

    @property
    def over(self):
        return self.finished or self.failed or self.gone

    @property
    def answered(self):
        """How many roots results came of."""
        return len({*self.records, *self.letters})

    async def end(self):
        """Say that all is read, and return when the host lets this task end."""
        self.say(AllRead())
        await self.hears(lambda: False)
        self.close()

    def close(self):
        self._beating.cancel()
        self._writer.close()

    def text(self, offset):
        """Return the word that came of a root."""
        return self.records[offset][0].payload.decode().split()[0]

    def pids(self):
        return {int(some[0].payload.split()[1]) for some in self.records.values()}


async def fed(app, words, *, run="run", batch=0, first=0, stream="in"):
    """Bring *words* in a batch as its credit allows, and end it when all are answered."""
    relay = await Relay.of(app, run=run, batch=batch)
    for offset, word in enumerate(words, first):
        await relay.hears(lambda: relay.credit > 0)
        relay.bring([word], first=offset, stream=stream)
    await relay.hears(lambda: relay.answered == len(words))
    await relay.end()
    return relay


def direct_children(pid):
    """Return the processes that *pid* has started."""
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in found]


def children(pid):
    """Return the processes below *pid*."""
    below = direct_children(pid)
    return below + [grandchild for child in below for grandchild in children(child)]


def gone(pid):
    try:
        return "State:\tZ" in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return True

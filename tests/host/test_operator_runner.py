"""A station by itself: real processes of one operator, and its desk."""

import asyncio
import json
import time
from contextlib import asynccontextmanager

import psutil
import pytest

from sojourn.app.operator import OnError
from sojourn.decide.plan import HERE
from sojourn.errors import EngineError
from sojourn.spark.agent.processes import LocalProcesses
from sojourn.spark.host.batch.cut import OpenRecord
from sojourn.spark.host.desk.events import (
    NodeCame,
    NodeLeft,
    PlacementAsked,
    TimePassed,
)
from sojourn.spark.host.desk.instructions import (
    KillProcessor,
    NotKept,
    RecordCompleted,
    StopPart,
)
from sojourn.spark.host.operator_runner import OperatorRunner
from sojourn.spark.wire.host_settings import OperatorSettings
from sojourn.spark.wire.processor import Waits
from sojourn.spark.wire.record import Record, Root

DEADLINE_S = 60


class Host:
    """Lets the desk of the station decide, and keeps what is done."""

    def __init__(self, log):
        self.log, self.done, self.stopping, self.why = log, [], [], ""
        self.put_count = 0

    def do(self, instructions):
        for instruction in instructions:
            match instruction:
                case RecordCompleted():
                    self.done.append(instruction.answer)
                case StopPart():
                    self.stopping.append(instruction.reason)
                case _:
                    self.station.do(instruction)

    def place(self, **on):
        where = {name.replace("_", "-"): number for name, number in on.items()}
        self.decide(PlacementAsked("", where))

    def put(self, *lines, **fields):
        for number, line in enumerate(lines):
            record = Record(
                f"id-{number}", json.dumps({"line": line}).encode(), "lines", **fields
            )
            self.station.arrived(record, inner=False)
            self.put_count += 1
            self.station.desk.put(OpenRecord(Root(("lines", 0), 0), "", record, self.put_count))
        self.do(self.station.desk.turn(time.monotonic()))

    def decide(self, event):
        self.do(self.station.desk.handle(event, time.monotonic()))

    def broken(self, reason):
        self.why = reason

    async def until(self, found):
        until_s = time.monotonic() + DEADLINE_S
        while not found():
            assert time.monotonic() < until_s, (self.done, self.stopping, self.why)
            self.station.watch(time.monotonic())
            await asyncio.sleep(0.01)


@asynccontextmanager
async def station(folder, operator, **fields):
    """Give a host whose station has been opened."""
    host = Host(folder / "logs" / f"{operator}.log")
    told = {
        "job": "sojourn.spark.processor.operator_job:of_application",
        "argument": f"unit.spark.host.application:app {operator}",
    }
    settings = OperatorSettings(**(told | fields))
    host.station = OperatorRunner(operator, host, settings, log=host.log)
    try:
        await host.station.open()
        yield host
    finally:
        await host.station.close()


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "tests")


def templates():
    return [
        each for each in psutil.Process().children() if "template" in " ".join(each.cmdline())
    ]


def test_records_are_done_by_processors_and_counted(tmp_path):
    async def work():
        async with station(tmp_path, "who") as host:
            host.place(here=2)
            await host.until(lambda: host.station.desk.processors.running == 2)
            host.put(*(f"line {n}" for n in range(20)), written_s=time.time() - 1.0, traced=1)
            await host.until(lambda: len(host.done) == 20)
            for number in range(20):
                parent = Record(f"id-{number}", b"", root="r", traced=1)
                host.station.sent(parent, [Record(f"id-{number}.0", b"12345", "words")])
            await host.until(lambda: host.station.tally().state.memory)
            host.put("one more")
            await host.until(lambda: len(host.done) == 21)
            return host, host.station.tally(spilled=3)

    host, tally = asyncio.run(work())
    assert len({json.loads(done.outputs[0].payload)["processor"] for done in host.done}) <= 2
    assert sum(each.served for each in tally.processors) == 1
    assert (tally.state.wanted, tally.state.running, tally.state.waiting) == (2, 2, 3)
    assert set(tally.state.memory) == {HERE}
    assert not templates()


def test_a_processor_that_waits_for_something_outside_is_told_and_not_late(tmp_path):
    async def work():
        async with station(tmp_path, "who", limit_s=3600.0) as host:
            host.place(here=1)
            await host.until(lambda: host.station.desk.processors.running == 1)
            host.station.said(1, Waits("the registry does not answer"))
            told = host.station.tally().state.waits
            host.put("a line")
            await host.until(lambda: host.done)
            return told, host.station.tally().state.waits, host.log.read_text()

    told, after, log = asyncio.run(work())
    assert (told, after) == ("the registry does not answer", "")
    assert "a record waits: the registry does not answer" in log


def test_what_raises_and_what_is_not_kept_is_in_the_log(tmp_path):
    async def work():
        policy = OnError(retries=0, then="dead_letter")
        async with station(tmp_path, "counted", on_error=policy) as host:
            host.place(here=1)
            await host.until(lambda: host.station.desk.processors.running == 1)
            host.put("no state is lent", position="lines[0] 7")
            await host.until(lambda: host.done)
            host.station.do(NotKept(Record("id", b"", position="lines[0] 9"), "too large"))
            host.station.measures = False
            host.put("another")
            await host.until(lambda: len(host.done) == 2)
            host.station.sent(Record("id", b"", traced=1), [])
            return host

    host = asyncio.run(work())
    assert all(done.dead for done in host.done)
    log = host.log.read_text()
    assert "lines[0] 7" in log
    assert "processors that start later will not get this record: too large" in log


def test_a_record_that_takes_too_long_ends_its_processor_and_nothing_else(tmp_path):
    async def work():
        policy = OnError(retries=0, then="dead_letter")
        async with station(tmp_path, "slowly", limit_s=0.05, on_error=policy) as host:
            host.place(here=1)
            await host.until(lambda: host.station.desk.processors.running == 1)
            host.put("long")
            await host.until(lambda: host.done)
            await host.until(lambda: host.station.desk.processors.running == 1)  # another one
            return host

    host = asyncio.run(work())
    assert "took longer than 0.05 s for one record" in host.done[0].dead
    assert not host.why


def test_processors_that_never_get_ready_break_the_host(tmp_path):
    async def work():
        told = {
            "job": "unit.spark.host.jobs:shout",
            "argument": "hangs",
            "set_up_limit_s": 0.05,
        }
        async with station(tmp_path, "shout", **told) as host:
            host.place(here=1)

            def tried():
                host.do(host.station.desk.handle(TimePassed(), time.monotonic() + 3600.0))
                host.station.watch(time.monotonic() + 3601.0)
                return host.why

            await host.until(tried)
            return host

    why = asyncio.run(work()).why
    assert why.startswith("shout: ")
    assert "processors in a row did not start; the last took longer than 0.05 s" in why


def test_without_a_template_no_processor_can_be_started(tmp_path):
    async def work():
        async with station(tmp_path, "who") as host:
            host.place(here=1)
            await host.until(lambda: host.station.desk.processors.running == 1)
            templates()[0].kill()
            await host.until(lambda: host.why)
            return host

    assert "the template process, which starts processors, ended" in asyncio.run(work()).why


def test_a_job_that_cannot_be_imported_is_an_error(tmp_path):
    async def work():
        async with station(tmp_path, "nobody"):
            pass

    with pytest.raises(EngineError, match="nobody"):
        asyncio.run(work())


def test_processors_of_a_node_come_and_go_with_it(tmp_path):
    async def work():
        async with station(tmp_path, "who", on={}) as host:
            near = host.station
            group = LocalProcesses(*near.job, near)
            await group.open()
            try:
                near.node_came("executor-1", group)
                host.decide(NodeCame("executor-1"))
                host.place(executor_1=2)
                await host.until(lambda: near.desk.processors.by_node == {"executor-1": 2})
                host.put("a", "b", "c")
                await host.until(lambda: len(host.done) == 3)
                near.do(KillProcessor(99))  # nobody knows it
                host.place(executor_1=1)
                await host.until(lambda: near.desk.processors.running == 1)
                near.node_left("executor-1")
                host.decide(NodeLeft("executor-1"))
                assert near.desk.processors.running == 0
            finally:
                await group.close()
            return host

    assert len(asyncio.run(work()).done) == 3
    assert not templates()

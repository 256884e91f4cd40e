"""A real host with real processes: records through it, rescaled, killed, left alone."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import msgspec
import pytest

from sojourn.host.messages import (
    Answers,
    Credit,
    End,
    Failed,
    Finished,
    Frames,
    Hello,
    Record,
    Records,
    ToFeed,
    framed,
)
from sojourn.host.reports import Ask, Broken, FromHost, Here, Reached, Report, Scale, Stopped

TESTS = Path(__file__).parent.parent
DEADLINE_S = 60
_to_feed = msgspec.msgpack.Decoder(ToFeed).decode
_from_host = msgspec.msgpack.Decoder(FromHost).decode


class Application:
    """A controller with one host."""

    def __init__(self, folder, process, server):
        self.folder, self.process, self.server = folder, process, server
        self.heard, self._writer = [], None
        self._news = asyncio.Event()

    async def connected(self, reader, writer):
        self._writer, frames = writer, Frames()
        with suppress(asyncio.CancelledError, ConnectionError):
            while some := await reader.read(65536):
                for body in frames.fed(some):
                    self.heard.append(_from_host(body))
                    self._news.set()
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
        await self.hears(lambda m: isinstance(m, Here))
        self.heard = [m for m in self.heard if not isinstance(m, Reached)]
        self._writer.write(framed(Scale(k)))
        await self.hears(lambda m: isinstance(m, Reached) and m.processors == k)
        return await self.report()

    async def report(self):
        """Ask for a report, and return it."""
        self.heard = [m for m in self.heard if not isinstance(m, Report)]
        self._writer.write(framed(Ask()))
        return (await self.hears(lambda m: isinstance(m, Report))).tally

    def leave(self):
        self._writer.close()


@asynccontextmanager
async def application(tmp_path, **settings):
    """Run a host, and end it."""
    controller = tmp_path / "controller.sock"
    made = Application(tmp_path, None, None)
    made.server = await asyncio.start_unix_server(made.connected, controller)
    told = {
        "name": "shout",
        "job": "unit.host.jobs:shout",
        "folder": str(tmp_path),
        "controller": str(controller),
        **settings,
    }
    made.process = subprocess.Popen(  # noqa: ASYNC220 - it returns at once
        [sys.executable, "-m", "sojourn.host", json.dumps(told)],
        env={**os.environ, "PYTHONPATH": str(TESTS)},
    )
    try:
        yield made
    finally:
        made.process.kill()
        made.process.wait()
        made.server.close()


async def fed(app, words, *, batch=0, first=0, stream="in"):
    """Send *words* through a feed as its credit allows, and return the answers."""
    await app.hears(lambda m: isinstance(m, Here))
    reader, writer = await asyncio.open_unix_connection(app.folder / "feed.sock")
    writer.write(framed(Hello("query", 0, batch)))
    frames, answers, left, credit = Frames(), {}, list(enumerate(words, first)), 0
    async with asyncio.timeout(DEADLINE_S):
        while True:
            while credit and left:
                number, word = left.pop(0)
                record = Record(
                    number,
                    f"id-{number}",
                    word.encode(),
                    stream,
                    offset=number,
                    root=f"id-{number}",
                    traced=int(number == 7),
                )
                writer.write(framed(Records([record])))
                credit -= 1
                if not left:
                    writer.write(framed(End()))
            for body in frames.fed(await reader.read(65536)):
                match _to_feed(body):
                    case Credit(number):
                        credit += number
                    case Answers(some):
                        answers.update((answer.number, answer) for answer in some)
                    case Failed() as failed:
                        writer.close()
                        return failed
                    case Finished():
                        writer.close()
                        return answers


def text(answer):
    return answer.outputs[0].payload.decode().split()[0]


def run(work):
    return asyncio.run(work)


def test_records_come_back_as_the_function_says(tmp_path):
    async def work():
        async with application(tmp_path, processors=3) as app:
            answers = await fed(app, [f"word-{i}" for i in range(200)])
            assert {n: text(a) for n, a in answers.items()} == {
                n: f"WORD-{n}" for n in range(200)
            }
            assert 1 <= len({a.outputs[0].payload.split()[1] for a in answers.values()}) <= 3

    run(work())


def test_an_operator_of_an_application_runs_on_a_host(tmp_path):
    async def work():
        argument = "unit.host.application:app split"
        job = "sojourn.host.operator_job:of_application"
        async with application(
            tmp_path,
            job=job,
            argument=argument,
            on_error={"retries": 0, "then": "dead_letter"},
        ) as app:
            return await fed(
                app, ['{"line": "to be or not"}', '{"line": 7}', "to be"], stream="lines"
            )

    answers = run(work())
    assert [json.loads(o.payload) for o in answers[0].outputs] == [
        {"word": "<to>"},
        {"word": "<be>"},
        {"word": "<or>"},
        {"word": "<not>"},
    ]
    assert "lines.line" in answers[1].dead
    assert "is not JSON" in answers[2].dead


def test_it_is_rescaled_while_it_works_and_nothing_is_lost(tmp_path):
    async def work():
        async with application(tmp_path, processors=2) as app:
            feeding = asyncio.create_task(fed(app, ["wait0.01"] * 400))
            for k in (8, 1, 5):
                tally = await app.scale(k)
                assert (tally.state.wanted, tally.state.running) == (k, k)
            answers = await feeding
            assert len(answers) == 400
            assert all(not a.dead for a in answers.values())

    run(work())


def test_processors_work_at_the_same_time(tmp_path):
    async def work():
        async with application(tmp_path, processors=10) as app:
            await app.hears(lambda m: isinstance(m, Reached) and m.processors == 10)
            began_s = time.monotonic()
            await fed(app, ["wait0.5"] * 20)
            assert time.monotonic() - began_s < 0.8 * 20 * 0.5

    run(work())


def test_what_it_counts_is_what_happened(tmp_path):
    async def work():
        async with application(tmp_path, processors=2) as app:
            await fed(app, ["wait0.02"] * 60)
            tally = await app.report()
            assert tally.positions == {"in": {0: 60}}
            assert tally.bytes["in"] == 60 * len("wait0.02")
            assert tally.bytes["out"] > tally.bytes["in"]
            assert sum(c.served for c in tally.processors) == 60
            assert sum(c.service_s for c in tally.processors) >= 60 * 0.02
            assert all(c.memory_bytes > 1e6 for c in tally.processors)
            assert [trace.identity for trace in tally.traces] == ["id-7"]
            assert tally.traces[0].children == [("out", "id-7.shout.0")]
            again = await app.report()
            assert sum(c.served for c in again.processors) == 0
            assert not again.traces

    run(work())


def test_a_function_that_raises_stops_the_feed_or_makes_a_dead_letter(tmp_path):
    async def work(then):
        async with application(tmp_path, on_error={"retries": 1, "then": then}) as app:
            answers = await fed(app, ["fine", "raise", "fine"])
            if then == "stop":
                stopped = await app.hears(lambda m: isinstance(m, Stopped))
                assert (stopped.identity, stopped.reason) == ("id-1", "ValueError: a bad word")
            return answers

    failed = run(work("stop"))
    assert (failed.number, failed.reason) == (1, "ValueError: a bad word")
    answers = run(work("dead_letter"))
    assert answers[1].dead == "ValueError: a bad word"
    assert text(answers[2]) == "FINE"


def test_a_processor_that_is_killed_costs_no_record(tmp_path):
    async def work():
        async with application(
            tmp_path, processors=3, on_error={"retries": 2, "then": "stop"}
        ) as app:
            first = await fed(app, ["wait0.01"] * 30)
            pids = {int(a.outputs[0].payload.split()[1]) for a in first.values()}
            feeding = asyncio.create_task(fed(app, ["wait0.05"] * 100, batch=1, first=100))
            await asyncio.sleep(0.2)
            os.kill(min(pids), signal.SIGKILL)
            answers = await feeding
            assert len(answers) == 100
            assert all(not a.dead for a in answers.values())

    run(work())


def test_a_record_that_kills_its_processor_follows_the_policy(tmp_path):
    async def work():
        async with application(
            tmp_path, processors=2, on_error={"retries": 1, "then": "dead_letter"}
        ) as app:
            return await fed(app, ["fine", "die", "fine"])

    answers = run(work())
    assert answers[1].dead == "its processor killed by signal 9"
    assert text(answers[2]) == "FINE"


def test_a_record_that_takes_too_long_follows_the_policy(tmp_path):
    async def work():
        async with application(
            tmp_path, limit_s=1.0, on_error={"retries": 0, "then": "dead_letter"}
        ) as app:
            return await fed(app, ["wait600", "fine"])

    answers = run(work())
    assert answers[0].dead == "its processor longer than 1 s for one record"
    assert text(answers[1]) == "FINE"


def test_a_batch_that_comes_again_is_not_done_again(tmp_path):
    async def work():
        async with application(tmp_path, processors=2) as app:
            once = await fed(app, ["wait0.01"] * 20)
            again = await fed(app, ["wait0.01"] * 20)
            pids = [
                Counter(a.outputs[0].payload for a in some.values()) for some in (once, again)
            ]
            assert pids[0] == pids[1]
            state = (await app.report()).state
            assert (state.replayed, state.retried) == (20, 0)

    run(work())


def test_a_set_up_that_fails_ends_the_host_with_the_reason(tmp_path):
    async def work():
        async with application(tmp_path, argument="never") as app:
            broken = await app.hears(lambda m: isinstance(m, Broken))
            assert "processors in a row were not ready" in broken.reason
            return await asyncio.to_thread(app.process.wait, DEADLINE_S)

    assert run(work()) == 0


def test_a_job_that_cannot_be_imported_is_said(tmp_path):
    async def work():
        async with application(tmp_path, job="unit.host.jobs:whisper") as app:
            return await app.hears(lambda m: isinstance(m, Broken))

    assert "'unit.host.jobs:whisper' cannot be loaded" in run(work()).reason


def children(pid):
    """Return the processes below *pid*."""
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    below = [int(child) for child in found]
    return below + [grandchild for child in below for grandchild in children(child)]


def gone(pid):
    try:
        return "State:\tZ" in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return True


@pytest.mark.parametrize("how", ["left", "killed"])
def test_nothing_is_left_behind(tmp_path, how):
    """When the controller is gone, or the host itself is killed."""

    async def work():
        async with application(tmp_path, processors=4) as app:
            await app.hears(lambda m: isinstance(m, Reached) and m.processors == 4)
            below = children(app.process.pid)
            assert len(below) >= 5
            if how == "left":
                app.leave()
            else:
                app.process.kill()
            for _ in range(20 * DEADLINE_S):
                if all(map(gone, below)):
                    break
                await asyncio.sleep(0.05)
            assert [pid for pid in below if not gone(pid)] == []

    run(work())

"""A real host with real processes: records through it, rescaled, killed, left alone."""

import asyncio
import json
import os
import re
import resource
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
from sojourn.host.reports import (
    Ask,
    Broken,
    FromHost,
    Here,
    Reached,
    Report,
    ScaleProcessors,
    Stopped,
)

TESTS = Path(__file__).parent.parent
DEADLINE_S = 60
_to_feed = msgspec.msgpack.Decoder(ToFeed).decode
_from_host = msgspec.msgpack.Decoder(FromHost).decode


class Application:
    """A controller with one host."""

    def __init__(self, folder, process, server):
        self.folder, self.process, self.server = folder, process, server
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
        self._writer.write(framed(ScaleProcessors(k)))
        await self.hears(lambda m: isinstance(m, Reached) and m.processors == k)
        return await self.report()

    async def until(self, found):
        """Return the first report that *found* is true of."""
        async with asyncio.timeout(DEADLINE_S):
            while not found(tally := await self.report()):  # noqa: ASYNC110 - it is asked
                await asyncio.sleep(0.05)
            return tally

    def wants(self, k):
        self._writer.write(framed(ScaleProcessors(k)))

    async def report(self):
        """Ask for a report, and return it."""
        self.heard = [m for m in self.heard if not isinstance(m, Report)]
        self._writer.write(framed(Ask()))
        return (await self.hears(lambda m: isinstance(m, Report))).tally

    def leave(self):
        self._writer.close()


@asynccontextmanager
async def application(tmp_path, *, files=None, **settings):
    """Run a host that may open so many *files*, and end it."""
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

    def limit():
        if files is not None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))

    with made.log.open("ab") as log:
        made.process = subprocess.Popen(  # noqa: ASYNC220 - it returns at once
            [sys.executable, "-m", "sojourn.host", json.dumps(told)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])},
            stdout=log,
            stderr=log,
            preexec_fn=limit,  # noqa: PLW1509 - there is one thread
        )
    try:
        yield made
    finally:
        made.process.kill()
        made.process.wait()
        made.server.close()


async def eventually(found):
    """Return what *found* returns once it is true."""
    async with asyncio.timeout(DEADLINE_S):
        while not (result := found()):  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.02)
        return result


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
                    place=f"{stream}/0/{number}",
                )
                writer.write(framed(Records([record])))
                credit -= 1
                if not left:
                    writer.write(framed(End()))
            some = await reader.read(65536)
            if not some:  # the host is gone
                writer.close()
                return answers
            for body in frames.fed(some):
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
                assert stopped.place == "in/0/1"
                assert stopped.reason.splitlines()[0] == "ValueError: a bad word"
            return answers

    failed = run(work("stop"))
    first, *frames, way_out = failed.reason.splitlines()
    assert (failed.number, first) == (1, "ValueError: a bad word")
    assert frames[0].startswith("Traceback")
    assert 'raise ValueError("a bad word")' in failed.reason
    assert 'on_error="dead_letter"' in way_out
    answers = run(work("dead_letter"))
    assert (answers[1].dead, answers[1].tries) == ("ValueError: a bad word", 2)
    assert "jobs.py" in answers[1].traceback
    assert "processor.py" not in answers[1].traceback  # none of our own frames
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
    assert answers[1].dead == "its processor was killed by signal 9"
    assert text(answers[2]) == "FINE"


def test_a_record_that_takes_too_long_follows_the_policy(tmp_path):
    async def work():
        async with application(
            tmp_path, limit_s=1.0, on_error={"retries": 0, "then": "dead_letter"}
        ) as app:
            return await fed(app, ["wait600", "fine"])

    answers = run(work())
    assert answers[0].dead == "its processor took longer than 1 s for one record"
    assert text(answers[1]) == "FINE"


def test_a_record_that_hangs_condemns_none_that_was_given_with_it(tmp_path):
    """Light records are given several at once; only the one that hangs alone is to blame."""

    async def work():
        async with application(
            tmp_path, limit_s=0.5, on_error={"retries": 0, "then": "dead_letter"}
        ) as app:
            await fed(app, ["fine"] * 300)
            words = ["fine"] * 100
            words[30] = "wait600"
            return await fed(app, words, batch=1, first=300)

    answers = run(work())
    assert {number for number, answer in answers.items() if answer.dead} == {330}
    assert len(answers) == 100


def test_the_log_tells_each_error_once_with_where_it_was_raised_and_every_line_the_time(
    tmp_path,
):
    async def work():
        async with application(tmp_path, on_error={"retries": 0, "then": "dead_letter"}) as app:
            answers = await fed(app, ["print3", *["raise"] * 20])
            assert sum(bool(answer.dead) for answer in answers.values()) == 20
            return app.log.read_text()

    text = run(work())
    assert text.count("Traceback") == 1
    assert "record in/0/1: ValueError: a bad word" in text
    stamped = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z ")
    assert all(stamped.match(line) for line in text.splitlines())
    assert any(line.endswith("Z xxx") for line in text.splitlines())


# -- what the system does not allow ----------------------------------------------------------


def test_more_processors_than_files_can_be_open_are_missing_and_the_others_work(tmp_path):
    async def work():
        async with application(tmp_path, files=80, processors=2) as app:
            await app.hears(lambda m: isinstance(m, Reached) and m.processors == 2)
            app.wants(100)
            tally = await app.until(lambda t: t.state.missing and t.state.running > 10)
            assert "ulimit -n" in tally.state.missing
            assert (tally.state.wanted, tally.state.running) == (100, tally.state.running)
            assert len(await fed(app, ["wait0.01"] * 100)) == 100
            assert (await app.scale(5)).state.missing == ""
            assert app.process.poll() is None

    run(work())


def test_more_processors_than_processes_can_be_started_are_missing_until_they_can(tmp_path):
    async def work():
        async with application(
            tmp_path, job="unit.host.jobs:few", argument="4", processors=2
        ) as app:
            await app.hears(lambda m: isinstance(m, Reached) and m.processors == 2)
            app.wants(9)
            tally = await app.until(lambda t: t.state.missing and t.state.running == 4)
            assert "ulimit -u" in tally.state.missing
            before = set(children(app.process.pid))
            assert len(await fed(app, ["wait0.01"] * 50)) == 50
            os.kill(max(before), signal.SIGKILL)  # which makes room for another
            await eventually(lambda: set(children(app.process.pid)) - before)
            await app.until(lambda t: t.state.running == 4)
            assert len(await fed(app, ["fine"] * 50, batch=1, first=50)) == 50

    run(work())


def test_a_set_up_that_takes_too_long_is_a_start_that_failed(tmp_path):
    async def work():
        async with application(tmp_path, argument="hangs", set_up_limit_s=0.2) as app:
            await app.hears(lambda m: isinstance(m, Here))
            tally = await app.until(lambda t: t.state.missing)
            assert "longer than 0.2 s for its set_up" in tally.state.missing
            return await app.hears(lambda m: isinstance(m, Broken))

    assert "longer than 0.2 s for its set_up" in run(work()).reason


def test_idle_processors_that_are_killed_at_once_are_replaced(tmp_path):
    async def work():
        async with application(tmp_path, processors=6) as app:
            await app.hears(lambda m: isinstance(m, Reached) and m.processors == 6)
            (template,) = direct_children(app.process.pid)
            processors = direct_children(template)
            for pid in processors:
                os.kill(pid, signal.SIGKILL)
            await app.until(
                lambda t: t.state.running == 6 and not {*processors} & {*children(template)}
            )
            assert len(await fed(app, ["fine"] * 10)) == 10
            assert not [m for m in app.heard if isinstance(m, Broken)]

    run(work())


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
            assert "5 processors in a row did not start" in broken.reason
            assert "RuntimeError: no model to be found" in broken.reason
            return await asyncio.to_thread(app.process.wait, DEADLINE_S)

    assert run(work()) == 0


def test_a_job_that_cannot_be_imported_is_said(tmp_path):
    async def work():
        async with application(tmp_path, job="unit.host.jobs:whisper") as app:
            return await app.hears(lambda m: isinstance(m, Broken))

    assert "'unit.host.jobs:whisper' cannot be loaded" in run(work()).reason


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
            await eventually(lambda: all(map(gone, below)))

    run(work())


@pytest.mark.parametrize("doing", ["a record", "its set-up"])
def test_busy_processors_do_not_outlive_a_host_that_is_killed(tmp_path, doing):
    async def work():
        argument = "hangs" if doing == "its set-up" else ""
        async with application(tmp_path, processors=2, argument=argument) as app:
            await app.hears(lambda m: isinstance(m, Here))
            if not argument:
                await app.hears(lambda m: isinstance(m, Reached) and m.processors == 2)
                feeding = asyncio.create_task(fed(app, ["wait600"] * 2))
                await app.until(lambda t: t.positions.get("in") == {0: 2})
            await eventually(lambda: len(children(app.process.pid)) == 3)
            below = children(app.process.pid)
            app.process.kill()
            await eventually(lambda: all(map(gone, below)))
            if not argument:
                await feeding

    run(work())


def test_one_that_is_let_go_during_its_set_up_ends(tmp_path):
    async def work():
        async with application(tmp_path, processors=3, argument="hangs") as app:
            await app.hears(lambda m: isinstance(m, Here))
            await eventually(lambda: len(children(app.process.pid)) == 4)
            below = children(app.process.pid)
            app.wants(1)
            await eventually(lambda: sum(map(gone, below)) == 2)

    run(work())


def test_it_counts_the_batches_that_feeds_have_begun(tmp_path):
    async def work():
        async with application(tmp_path) as app:
            for batch in (0, 1, 1, 2):  # one comes again
                await fed(app, ["fine"], batch=batch, first=batch)
            return (await app.report()).state.batches

    assert run(work()) == 3


def test_a_host_without_its_template_says_so_and_ends(tmp_path):
    async def work():
        async with application(tmp_path) as app:
            await app.hears(lambda m: isinstance(m, Reached))
            os.kill(direct_children(app.process.pid)[0], signal.SIGKILL)
            broken = await app.hears(lambda m: isinstance(m, Broken))
            await asyncio.to_thread(app.process.wait, DEADLINE_S)
            return broken.reason

    assert run(work()) == "the template process, which starts processors, ended"

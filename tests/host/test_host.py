"""A real host with real processes: records through it, rescaled, killed, left alone."""

import asyncio
import json
import os
import re
import signal
import time

import pytest

from host.hosting import (
    DEADLINE_S,
    Relay,
    application,
    children,
    direct_children,
    eventually,
    fed,
    gone,
)
from sojourn.spark.wire.controller import Broken, Bye, HostHello, Reached, Stopped


def test_records_come_back_as_the_function_says(tmp_path):
    async def work():
        async with application(tmp_path, processors=3) as app:
            batch = await fed(app, [f"word-{i}" for i in range(200)])
            assert batch.finished
            assert {n: batch.text(n) for n in batch.records} == {
                n: f"WORD-{n}" for n in range(200)
            }
            assert 1 <= len(batch.pids()) <= 3

    asyncio.run(work())


def test_an_operator_of_an_application_runs_on_a_host(tmp_path):
    async def work():
        argument = "unit.spark.host.application:app split"
        job = "sojourn.spark.processor.operator_job:of_application"
        part = {"readers": {"lines": ["shout"]}, "leaving": ["split"]}
        on_error = {"retries": 0, "then": "dead_letter"}
        async with application(
            tmp_path, part=part, job=job, argument=argument, on_error=on_error
        ) as app:
            return await fed(
                app, ['{"line": "to be or not"}', '{"line": 7}', "to be"], stream="lines"
            )

    batch = asyncio.run(work())
    assert [json.loads(record.payload) for record in batch.records[0]] == [
        {"word": "<to>"},
        {"word": "<be>"},
        {"word": "<or>"},
        {"word": "<not>"},
    ]
    assert "lines.line" in batch.letters[1].error
    assert "is not JSON" in batch.letters[2].error


def test_no_more_is_granted_than_processors_and_a_few_more(tmp_path):
    async def work():
        async with application(tmp_path, processors=3) as app:
            await app.hears(lambda m: isinstance(m, Reached) and m.processors == 3)
            relay = await Relay.of(app)
            await relay.hears(lambda: relay.credit == 1)  # what it brings is not known yet
            relay.bring(["wait600"])
            await relay.hears(lambda: relay.credit == 4)
            relay.bring(["wait600"] * 4, first=1)
            await app.until_part(lambda t: t.state.open == 5)
            assert relay.credit == 0
            relay.close()

    asyncio.run(work())


def test_it_tells_how_many_processors_are_at_work(tmp_path):
    """Where nothing is done, that tells a long record from processors that get none."""

    async def work():
        async with application(tmp_path, processors=3) as app:
            await app.hears(lambda m: isinstance(m, Reached) and m.processors == 3)
            assert (await app.report()).state.at_work == 0
            relay = await Relay.of(app)
            relay.bring(["wait600"])
            await app.until(lambda t: t.state.at_work == 1)
            relay.close()

    asyncio.run(work())


def test_it_is_rescaled_while_it_works_and_nothing_is_lost_or_comes_twice(tmp_path):
    async def work():
        async with application(tmp_path, processors=2) as app:
            relay = await Relay.of(app)
            feeding = asyncio.create_task(relay.bring_on(lambda _: "wait0.01"))
            for k in (8, 1, 5):
                tally = await app.scale(k)
                assert (tally.state.wanted, tally.state.running) == (k, k)
                sent = relay.brought
                await relay.hears(lambda sent=sent: relay.answered > sent)
            feeding.cancel()
            await relay.hears(lambda: relay.answered == relay.brought)
            await relay.end()
            assert relay.finished
            assert once_each(relay)
            assert (await app.report()).state.retried == 0

    asyncio.run(work())


def once_each(relay):
    """Tell whether each record that was brought has one result, and no dead letter."""
    results = {offset: len(some) for offset, some in relay.records.items()}
    return (results, relay.letters) == (dict.fromkeys(range(relay.brought), 1), {})


def test_processors_work_at_the_same_time(tmp_path):
    async def work():
        async with application(tmp_path, processors=10) as app:
            await app.hears(lambda m: isinstance(m, Reached) and m.processors == 10)
            began_s = time.monotonic()
            await fed(app, ["wait0.5"] * 20)
            assert time.monotonic() - began_s < 0.8 * 20 * 0.5

    asyncio.run(work())


def test_what_it_counts_is_what_happened(tmp_path):
    async def work():
        async with application(tmp_path, processors=2) as app:
            await fed(app, ["wait0.02"] * 60)
            part = await app.part_report()
            assert part.state.positions == {"in": {0: 60}}
            assert part.state.visits == {"in": {"shout": 1.0}}
            tally = part.operators["shout"]
            assert tally.bytes["in"] == 60 * len("wait0.02")
            assert tally.bytes["out"] > tally.bytes["in"]
            assert sum(c.served for c in tally.processors) == 60
            assert sum(c.service_s for c in tally.processors) >= 60 * 0.02
            assert max(c.longest_service_s for c in tally.processors) >= 0.02
            assert all(c.memory_bytes > 1e6 for c in tally.processors)
            assert [trace.identity for trace in tally.traces] == ["id-7"]
            assert tally.traces[0].children == [("out", "id-7.shout.0")]
            again = await app.report()
            assert sum(c.served for c in again.processors) == 0
            assert not again.traces

    asyncio.run(work())


def test_a_function_that_raises_stops_the_batch_or_makes_a_dead_letter(tmp_path):
    async def work(then):
        on_error = {"retries": 1, "then": then}
        async with application(tmp_path / then, on_error=on_error) as app:
            batch = await fed(app, ["fine", "raise", "fine"])
            if then == "stop":
                stopped = await app.hears(lambda m: isinstance(m, Stopped))
                assert (stopped.operator, stopped.position) == ("shout", "in/0/1")
                assert stopped.reason.splitlines()[0] == "ValueError: a bad word"
            return batch

    for then in ("stop", "dead_letter"):
        (tmp_path / then).mkdir()
    first, *frames, way_out = asyncio.run(work("stop")).failed.splitlines()
    assert first == "shout: record in/0/1: ValueError: a bad word"
    assert frames[0].startswith("Traceback")
    assert any('raise ValueError("a bad word")' in frame for frame in frames)
    assert 'on_error="dead_letter"' in way_out
    batch = asyncio.run(work("dead_letter"))
    letter = batch.letters[1]
    assert (letter.operator, letter.error, letter.tries) == (
        "shout",
        "ValueError: a bad word",
        2,
    )
    assert (letter.record.payload, letter.inner) == (b"raise", False)
    assert "jobs.py" in letter.traceback
    assert "processor.py" not in letter.traceback  # none of our own frames
    assert batch.text(2) == "FINE"


def test_a_processor_that_is_killed_costs_no_record_and_repeats_none(tmp_path):
    """All are in the middle of a record when one of them is killed."""
    gate = tmp_path / "gate"

    async def work():
        async with application(
            tmp_path, processors=3, on_error={"retries": 2, "then": "stop"}
        ) as app:
            await app.hears(lambda m: isinstance(m, Reached) and m.processors == 3)
            (template,) = direct_children(app.process.pid)
            relay = await Relay.of(app)
            relay.bring(["fine"] * 20)
            await relay.hears(lambda: relay.answered == 20)
            relay.bring([f"gate{gate}"] * 30, first=20)
            await app.until(lambda t: t.state.at_work == 3)
            os.kill(min(direct_children(template)), signal.SIGKILL)
            await app.until(lambda t: t.state.retried > 0)
            gate.touch()
            await relay.hears(lambda: relay.answered == 50)
            await relay.end()
            assert relay.finished
            assert once_each(relay)

    asyncio.run(work())


def test_a_record_that_kills_its_processor_follows_the_policy(tmp_path):
    async def work():
        async with application(
            tmp_path, processors=2, on_error={"retries": 1, "then": "dead_letter"}
        ) as app:
            return await fed(app, ["fine", "die", "fine"])

    batch = asyncio.run(work())
    assert batch.letters[1].error == "its processor was killed by signal 9"
    assert batch.text(2) == "FINE"


def test_a_record_that_takes_too_long_follows_the_policy(tmp_path):
    async def work():
        async with application(
            tmp_path, limit_s=1.0, on_error={"retries": 0, "then": "dead_letter"}
        ) as app:
            return await fed(app, ["wait600", "fine"])

    batch = asyncio.run(work())
    assert batch.letters[0].error == "its processor took longer than 1 s for one record"
    assert batch.text(1) == "FINE"


@pytest.mark.parametrize("culprit", ["wait600", "die"])
def test_a_record_that_hangs_or_kills_condemns_none_that_was_given_with_it(tmp_path, culprit):
    """Light records are given several at once; only the one that fails alone is to blame."""

    async def work():
        async with application(
            tmp_path, limit_s=0.5, on_error={"retries": 0, "then": "dead_letter"}
        ) as app:
            await fed(app, ["fine"] * 300)
            words = ["fine"] * 100
            words[30] = culprit
            return await fed(app, words, batch=1, first=300)

    batch = asyncio.run(work())
    assert (set(batch.letters), batch.answered) == ({330}, 100)
    assert all(len(some) == 1 for some in batch.records.values())


def test_the_log_tells_each_error_once_with_where_it_was_raised_and_every_line_the_time(
    tmp_path,
):
    async def work():
        async with application(tmp_path, on_error={"retries": 0, "then": "dead_letter"}) as app:
            batch = await fed(app, ["print3", *["raise"] * 20])
            assert len(batch.letters) == 20
            return app.log.read_text()

    text = asyncio.run(work())
    assert text.count("Traceback") == 1
    assert "record in/0/1: ValueError: a bad word" in text
    stamped = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z ")
    assert all(stamped.match(line) for line in text.splitlines())
    assert any(line.endswith("Z xxx") for line in text.splitlines())


# -- what the system does not allow ----------------------------------------------------------


def test_a_system_without_room_for_processes_is_waited_for(tmp_path):
    """Eight that fail together are one bad moment, and not an operator that cannot start."""
    room = tmp_path / "room"

    async def work():
        async with application(
            tmp_path, job="unit.spark.host.jobs:starved", argument=str(room), processors=8
        ) as app:
            await app.hears(lambda m: isinstance(m, Reached) and "no process" in m.missing)
            assert (await app.report()).state.running == 0
            room.touch()
            relay = await fed(app, ["fine"])
            assert relay.finished
            await app.hears(lambda m: isinstance(m, Reached) and m.processors == 8)

    asyncio.run(work())


def test_more_processors_than_files_can_be_open_are_missing_and_the_others_work(tmp_path):
    async def work():
        async with application(tmp_path, files=80, processors=2) as app:
            await app.hears(lambda m: isinstance(m, Reached) and m.processors == 2)
            app.wants(100)
            tally = await app.until(lambda t: t.state.missing and t.state.running > 10)
            assert "ulimit -n" in tally.state.missing
            assert (tally.state.wanted, tally.state.running) == (100, tally.state.running)
            batch = await fed(app, ["wait0.01"] * 100)
            assert (len(batch.records), batch.letters) == (100, {})
            assert (await app.scale(5)).state.missing == ""
            assert app.process.poll() is None

    asyncio.run(work())


def test_more_processors_than_processes_can_be_started_are_missing_until_they_can(tmp_path):
    async def work():
        async with application(
            tmp_path, job="unit.spark.host.jobs:few", argument="4", processors=2
        ) as app:
            await app.hears(lambda m: isinstance(m, Reached) and m.processors == 2)
            app.wants(9)
            tally = await app.until(lambda t: t.state.missing and t.state.running == 4)
            assert "ulimit -u" in tally.state.missing
            before = set(children(app.process.pid))
            assert (await fed(app, ["wait0.01"] * 50)).answered == 50
            os.kill(max(before), signal.SIGKILL)  # which makes room for another
            await eventually(lambda: set(children(app.process.pid)) - before)
            await app.until(lambda t: t.state.running == 4)
            assert (await fed(app, ["fine"] * 50, batch=1, first=50)).answered == 50

    asyncio.run(work())


def test_a_set_up_that_takes_too_long_is_a_start_that_failed(tmp_path):
    async def work():
        async with application(tmp_path, argument="hangs", set_up_limit_s=0.2) as app:
            await app.hears(lambda m: isinstance(m, HostHello))
            tally = await app.until(lambda t: t.state.missing)
            assert "longer than 0.2 s for its set_up" in tally.state.missing
            return await app.hears(lambda m: isinstance(m, Broken))

    assert "longer than 0.2 s for its set_up" in asyncio.run(work()).reason


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
            assert (await fed(app, ["fine"] * 10)).answered == 10
            assert not [m for m in app.heard if isinstance(m, Broken)]

    asyncio.run(work())


def test_a_batch_that_comes_again_is_not_done_again(tmp_path):
    async def work():
        async with application(tmp_path, processors=2) as app:
            once = await fed(app, ["wait0.01"] * 20)
            again = await fed(app, ["wait0.01"] * 20, run="another run")
            assert again.records == once.records
            tally = await app.part_report()
            assert (tally.state.repeated, tally.state.attempt) == (20, 2)
            assert tally.operators["shout"].state.retried == 0

    asyncio.run(work())


def test_a_set_up_that_fails_ends_the_host_with_the_reason(tmp_path):
    async def work():
        async with application(tmp_path, argument="never") as app:
            broken = await app.hears(lambda m: isinstance(m, Broken))
            assert "5 processors in a row did not start" in broken.reason
            assert "RuntimeError: no model to be found" in broken.reason
            return await asyncio.to_thread(app.process.wait, DEADLINE_S)

    assert asyncio.run(work()) == 0


def test_a_job_that_cannot_be_imported_is_said(tmp_path):
    async def work():
        async with application(tmp_path, job="unit.spark.host.jobs:whisper") as app:
            return await app.hears(lambda m: isinstance(m, Broken))

    assert "'unit.spark.host.jobs:whisper' cannot be loaded" in asyncio.run(work()).reason


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

    asyncio.run(work())


@pytest.mark.parametrize("doing", ["a record", "its set-up"])
def test_busy_processors_do_not_outlive_a_host_that_is_killed(tmp_path, doing):
    async def work():
        argument = "hangs" if doing == "its set-up" else ""
        async with application(tmp_path, processors=2, argument=argument) as app:
            await app.hears(lambda m: isinstance(m, HostHello))
            if not argument:
                await app.hears(lambda m: isinstance(m, Reached) and m.processors == 2)
                relay = await Relay.of(app)
                relay.bring(["wait600"] * 2)
                await app.until_part(lambda t: t.state.positions.get("in") == {0: 2})
            await eventually(lambda: len(children(app.process.pid)) == 3)
            below = children(app.process.pid)
            app.process.kill()
            await eventually(lambda: all(map(gone, below)))
            if not argument:
                await relay.hears(lambda: relay.gone)

    asyncio.run(work())


def test_one_that_is_let_go_during_its_set_up_ends(tmp_path):
    async def work():
        async with application(tmp_path, processors=3, argument="hangs") as app:
            await app.hears(lambda m: isinstance(m, HostHello))
            await eventually(lambda: len(children(app.process.pid)) == 4)
            below = children(app.process.pid)
            app.wants(1)
            await eventually(lambda: sum(map(gone, below)) == 2)

    asyncio.run(work())


def test_it_says_which_batch_runs(tmp_path):
    async def work():
        async with application(tmp_path) as app:
            before = (
                await app.hears(lambda m: isinstance(m, HostHello))
            ) and await app.part_report()
            for batch, again in ((0, "a"), (1, "a"), (1, "b"), (2, "b")):  # one comes again
                await fed(app, ["fine"], run=again, batch=batch, first=batch)
            after = (await app.part_report()).state
            return before.state.batch, after.batch, after.attempt

    assert asyncio.run(work()) == (-1, 2, 2)


def test_a_host_without_its_template_says_so_and_ends(tmp_path):
    async def work():
        async with application(tmp_path) as app:
            await app.hears(lambda m: isinstance(m, Reached))
            os.kill(direct_children(app.process.pid)[0], signal.SIGKILL)
            broken = await app.hears(lambda m: isinstance(m, Broken))
            await asyncio.to_thread(app.process.wait, DEADLINE_S)
            return broken.reason

    assert asyncio.run(work()) == "shout: the template process, which starts processors, ended"


@pytest.mark.parametrize("how", ["killed", "in order"])
def test_temporary_files_are_removed_if_who_started_it_was_killed(tmp_path, how):
    async def work():
        temporary = tmp_path / "temporary"
        temporary.mkdir()
        part = {"temporary": str(temporary)}
        async with application(tmp_path, part=part, shell=True) as app:
            here = await app.hears(lambda m: isinstance(m, HostHello))
            if how == "in order":
                app.say(Bye())
            else:
                app.process.kill()
                app.leave()
            await eventually(lambda: gone(here.pid))
            return temporary.exists()

    assert asyncio.run(work()) == (how == "in order")

"""Batches and their cuts, and records that pass from operator to operator, in a real host."""

import asyncio
import json

from host.hosting import Relay, application, fed
from sojourn.spark.host.batch.cut import CutId
from sojourn.spark.host.batch.cut_store import CutFiles
from sojourn.spark.wire.controller import Broken, Drain
from sojourn.spark.wire.frames import framed
from sojourn.spark.wire.relay import AllRead, Finished


def gate(tmp_path):
    """Return the word that is done once it is a file, and what creates that."""
    path = tmp_path / "gate"
    return f"gate{path}", path.touch


def test_a_batch_waits_for_no_record_and_its_cut_is_on_disk_when_it_ends(tmp_path):
    word, open_gate = gate(tmp_path)

    async def work():
        async with application(tmp_path, processors=2) as app:
            first = await Relay.of(app)
            first.bring(["fine", word])
            await first.hears(lambda: 0 in first.records)
            await first.end()
            assert (first.finished, first.answered) == (True, 1)
            cut = CutFiles(tmp_path / "cuts").load(CutId(0, 1))
            assert cut.taken == {("in", 0): 2}
            assert [(o.root.offset, o.operator) for o in cut.open] == [(1, "shout")]
            second = await Relay.of(app, batch=1)
            open_gate()
            await second.hears(lambda: 1 in second.records)
            await second.end()
            assert second.finished
            assert CutFiles(tmp_path / "cuts").load(CutId(1, 1)).open == ()

    asyncio.run(work())


def test_a_host_that_follows_another_goes_on_from_its_cut_and_its_log(tmp_path):
    word, open_gate = gate(tmp_path)

    async def work():
        async with application(tmp_path, processors=2) as app:
            relay = await Relay.of(app)
            relay.bring(["fine", word])
            await relay.hears(lambda: 0 in relay.records)
            await relay.end()
            after = await Relay.of(app, batch=1)  # which is not committed
            after.bring(["fine"], first=2)
            await after.hears(lambda: 2 in after.records)
            (before,) = after.records[2]
        open_gate()
        async with application(tmp_path, processors=2) as app:
            relay = await Relay.of(app, run="another run", batch=1)
            relay.bring(["fine"] * 4)
            await relay.hears(lambda: relay.answered == 3)
            await relay.end()
            assert relay.finished
            assert sorted(relay.records) == [1, 2, 3]
            assert all(len(some) == 1 for some in relay.records.values())
            # it tells the processor that worked it out, which ended with the first host
            assert relay.records[2] == [before]
            state = (await app.part_report()).state
            assert (state.repeated, state.open, state.attempt) == (3, 0, 2)
            assert state.positions == {"in": {0: 4}}

    asyncio.run(work())


def test_a_batch_with_a_cut_on_disk_that_spark_has_not_committed_runs_again(tmp_path):
    """The host that follows needs the cut before it."""

    async def work():
        async with application(tmp_path) as app:
            for batch in range(3):
                relay = await fed(app, ["fine"], batch=batch, first=batch)
                assert relay.finished
        async with application(tmp_path) as app:
            again = await Relay.of(app, run="another run", batch=2)
            again.bring(["fine"] * 2, first=2)
            await again.hears(lambda: again.answered == 2)
            await again.end()
            assert (again.finished, sorted(again.records)) == (True, [2, 3])
            assert again.records[2] == relay.records[2]

    asyncio.run(work())


def test_records_with_one_id_are_all_answered_by_the_host_that_follows(tmp_path):
    """A producer that retries writes an id twice; both are open when the host is killed."""
    word, open_gate = gate(tmp_path)
    words, names = ["one", word, word, "four"], ["same", "same", "same", "other"]

    async def work():
        async with application(tmp_path, processors=2) as app:
            relay = await Relay.of(app)
            relay.bring(words, names=names)
            await relay.hears(lambda: 0 in relay.records)
        open_gate()
        async with application(tmp_path, processors=2) as app:
            relay = await Relay.of(app, run="another run")
            relay.bring(words, names=names)
            await relay.hears(lambda: relay.answered == 4)
            await relay.end()
            assert relay.finished
            assert all(len(some) == 1 for some in relay.records.values())
            assert (await app.part_report()).state.open == 0

    asyncio.run(work())


def test_tasks_of_an_attempt_that_is_over_are_refused(tmp_path):
    async def work():
        async with application(tmp_path) as app:
            old = await Relay.of(app, run="first")
            await old.hears(lambda: old.credit)
            new = await Relay.of(app, run="second")
            await old.hears(lambda: old.failed)
            late = await Relay.of(app, run="first")
            await late.hears(lambda: late.failed)
            old.bring(["old"])
            late.bring(["late"])
            new.bring(["new"])
            await new.hears(lambda: new.records)
            await new.end()
            return old, new, late

    old, new, late = asyncio.run(work())
    assert old.failed == "its batch is over"
    assert late.failed == "a later attempt or batch than (1, 0) has begun"
    assert (new.finished, new.text(0)) == (True, "NEW")
    assert old.answered == late.answered == 0


def test_a_task_of_an_earlier_run_that_comes_first_after_a_later_one_is_refused(tmp_path):
    """It was held up before it could connect; a number now would make its run the latest."""

    async def work():
        async with application(tmp_path, processors=2) as app:
            later = await Relay.of(app, run="later", stage=5)
            later.bring(["fine"])
            await later.hears(lambda: later.answered == 1)
            earlier = await Relay.of(app, run="earlier", stage=4)
            await earlier.hears(lambda: earlier.over)
            assert "a later run or batch" in earlier.failed
            await later.end()
            assert later.finished
        assert CutFiles(tmp_path / "cuts").last(0) == CutId(0, 1)

    asyncio.run(work())


def test_a_batch_ends_when_all_its_tasks_have_read_all(tmp_path):
    async def work():
        async with application(tmp_path, tasks=2) as app:
            one, two = await Relay.of(app), await Relay.of(app, partition=1)
            one.say(AllRead())
            await asyncio.sleep(0.2)
            assert not one.over
            await two.end()
            await one.hears(lambda: False)
            assert one.finished
            assert two.finished

    asyncio.run(work())


def test_a_batch_whose_tasks_do_not_begin_fails(tmp_path):
    async def work():
        async with application(tmp_path, tasks=2) as app:
            relay = await Relay.of(app)
            await relay.end()
            return relay.failed

    assert asyncio.run(work()) == (
        "1 of 2 tasks of the batch have begun after 10 s; Spark may have too few slots"
    )


def test_while_it_is_drained_a_batch_ends_only_when_nothing_is_open(tmp_path):
    word, open_gate = gate(tmp_path)

    async def work():
        async with application(tmp_path) as app:
            relay = await Relay.of(app)
            relay.bring([word, "fine"])
            await app.until_part(lambda t: t.state.open == 2)
            app.say(Drain())
            await relay.hears(lambda: relay.credit > 1000)  # whatever Spark has read is taken
            relay.say(AllRead())
            await asyncio.sleep(0.2)
            assert not relay.over
            assert (await app.part_report()).state.clean is None
            open_gate()
            await relay.hears(lambda: False)
            assert relay.finished
            assert sorted(relay.records) == [0, 1]
            assert (await app.part_report()).state.clean == 0
            assert CutFiles(tmp_path / "cuts").load(CutId(0, 1)).open == ()

    asyncio.run(work())


def test_cuts_that_cannot_be_written_end_the_host_with_the_reason(tmp_path):
    async def work():
        async with application(tmp_path) as app:
            relay = await Relay.of(app)
            await relay.hears(lambda: relay.credit)
            (tmp_path / "cuts" / "cuts").write_text("no folder")
            await relay.end()
            assert not relay.finished
            return (await app.hears(lambda m: isinstance(m, Broken))).reason

    assert "the open records of part: " in asyncio.run(work())


# -- several operators -----------------------------------------------------------------------


def pairs(**fields):
    """Return the settings of a host that runs the operators of an application."""
    names = ("split", "count", "first", "again")
    return {
        "operators": {
            name: {
                "job": "sojourn.spark.processor.operator_job:of_application",
                "argument": f"unit.spark.host.part:app {name}",
                "processors": 2,
                "on_error": {"retries": 0, "then": "dead_letter"},
            }
            for name in names
        },
        "readers": {"lines": ["split"], "split": ["count", "first"], "first": ["again"]},
        "leaving": ["count", "first", "again"],
        "inner": ["split", "first"],
        **fields,
    }


def made(relay, stream):
    return sorted(
        tuple(json.loads(record.payload).values())
        for some in relay.records.values()
        for record in some
        if record.stream == stream
    )


def line(words):
    return json.dumps({"line": words})


def test_records_pass_from_operator_to_operator_inside(tmp_path):
    async def work():
        async with application(tmp_path, part=pairs()) as app:
            relay = await Relay.of(app)
            relay.bring([line("to be or"), line("to be")], stream="lines")
            await relay.hears(lambda: sum(map(len, relay.records.values())) == 9)
            await relay.end()
            return relay, await app.part_report()

    relay, tally = asyncio.run(work())
    assert relay.finished
    assert made(relay, "first") == [("be",), ("to",), ("to",)]
    assert made(relay, "again") == [("be again",), ("to again",), ("to again",)]
    assert [pair for pair, *_ in made(relay, "count")] == ["be or", "to be", "to be"]
    assert made(relay, "split") == []  # which stays inside
    names = {record.name for record in relay.records[1]}
    assert "id-1.split.0.first.0.again.0" in names
    assert tally.state.visits == {
        "lines": {"split": 1.0, "count": 1.5, "first": 1.5, "again": 1.5}
    }
    came = {name: sum(each.arrivals.values()) for name, each in tally.operators.items()}
    assert came == {"split": 0, "count": 3, "first": 3, "again": 3}  # those from inside


def test_what_operators_of_a_part_read_by_key_is_served_in_order(tmp_path):
    async def work():
        async with application(tmp_path, part=pairs()) as app:
            relay = await Relay.of(app)
            relay.bring([line("to be")] * 20, stream="lines")
            await relay.hears(lambda: sum(map(len, relay.records.values())) == 60)
            await relay.end()
            return relay

    by_processor = {}
    for _, seen, processor in made(asyncio.run(work()), "count"):
        by_processor.setdefault(processor, []).append(seen)
    # each has counted on its own, and none was counted by two at a time
    assert sum(map(len, by_processor.values())) == 20
    assert all(sorted(seen) == list(range(1, len(seen) + 1)) for seen in by_processor.values())


def test_what_is_open_anywhere_inside_comes_back_after_a_kill(tmp_path):
    held = tmp_path / "held"

    async def work():
        async with application(tmp_path, part=pairs()) as app:
            relay = await Relay.of(app)
            relay.bring([line(f"{held} be or")], stream="lines")
            await relay.hears(lambda: sum(map(len, relay.records.values())) == 4)
            await relay.end()
            assert relay.finished
        (record,) = CutFiles(tmp_path / "cuts").load(CutId(0, 1)).open
        assert (record.operator, record.record.name) == ("first", "id-0.split.0")
        held.touch()
        async with application(tmp_path, part=pairs()) as app:
            relay = await Relay.of(app, run="another run", batch=1)
            await relay.hears(lambda: sum(map(len, relay.records.values())) == 2)
            await relay.end()
            return relay

    relay = asyncio.run(work())
    names = [record.name for record in relay.records[0]]
    assert names == ["id-0.split.0.first.0", "id-0.split.0.first.0.again.0"]


def test_a_dead_letter_of_a_record_that_never_was_in_kafka_says_so(tmp_path):
    async def work():
        async with application(tmp_path, part=pairs()) as app:
            relay = await Relay.of(app)
            relay.bring([line("raise be")], stream="lines")
            await relay.hears(lambda: relay.letters)
            await relay.end()
            return relay.letters[0]

    letter = asyncio.run(work())
    assert (letter.operator, letter.inner) == ("again", True)
    assert letter.record.name == "id-0.split.0.first.0"
    assert letter.record.position == "lines/0/0"


def test_each_operator_has_a_log_of_its_own(tmp_path):
    async def work():
        part = pairs(logs=str(tmp_path / "logs"))
        async with application(tmp_path, part=part) as app:
            await fed(app, ["no json"], stream="lines")

    asyncio.run(work())
    logs = {path.name: path.read_text() for path in (tmp_path / "logs").iterdir()}
    assert logs.keys() == {"split.log", "count.log", "first.log", "again.log"}
    assert "is not JSON" in logs["split.log"]
    assert logs["count.log"] == ""


# -- strangers -------------------------------------------------------------------------------


def test_who_sends_rubbish_harms_nobody(tmp_path):
    rubbish = [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\0\0\0\2no",
        framed(AllRead()),
        framed(Finished()),
        b"",
    ]

    async def work():
        async with application(tmp_path) as app:
            relay = await Relay.of(app)
            for some in rubbish:
                _, writer = await asyncio.open_unix_connection(tmp_path / "relay.sock")
                writer.write(some)
                writer.close()
            stranger = Relay(*await asyncio.open_unix_connection(tmp_path / "relay.sock"))
            stranger.bring(["stranger"])  # which has not said what it is of
            relay.bring(["fine"])
            await relay.hears(lambda: relay.records)
            await relay.end()
            assert (relay.finished, relay.text(0)) == (True, "FINE")
            assert stranger.answered == 0
            stranger.close()
            assert app.process.poll() is None

    asyncio.run(work())


def test_a_query_with_another_checkpoint_is_refused_before_its_first_record(tmp_path):
    """Its batches begin with 0 again: they would be mistaken for those that are committed."""

    async def work():
        async with application(tmp_path) as app:
            relay = await Relay.of(app, query="first")
            relay.bring(["fine"])
            await relay.hears(lambda: 0 in relay.records)
            await relay.end()
        before = sorted(path.name for path in (tmp_path / "cuts").rglob("*"))
        async with application(tmp_path) as app:
            other = await Relay.of(app, run="another run", query="second")
            await other.hears(lambda: other.failed)
            assert other.failed == (
                f"the state in {tmp_path / 'cuts'} belongs to the checkpoint with id first, "
                "and the query has another, with id second; start it with that checkpoint "
                "again, or with a new state folder"
            )
            assert other.credit == 0
            assert sorted(path.name for path in (tmp_path / "cuts").rglob("*")) == before
            again = await Relay.of(app, run="a third run", batch=1, query="first")
            again.bring(["fine"], first=1)
            await again.hears(lambda: 1 in again.records)

    asyncio.run(work())

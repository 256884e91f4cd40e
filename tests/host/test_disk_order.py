"""In which order a real host writes to disk."""

import asyncio
import json
import os
from pathlib import Path

from host.hosting import Relay, application, eventually
from sojourn.spark.host.batch.cut_store import CutFiles
from sojourn.spark.wire.controller import Broken
from sojourn.spark.wire.record import Record
from sojourn.spark.wire.relay import AllRead, Row, RowsMessage

COUNTED = {
    "operators": {
        "counted": {
            "job": "sojourn.spark.processor.operator_job:of_application",
            "argument": "unit.spark.host.application:app counted",
        }
    },
    "readers": {"lines": ["counted"]},
    "leaving": ["counted"],
    "stateful": ["counted"],
}


def bring(relay, words, *, first=0):
    """Let a relay bring lines, each of which is a key."""
    for offset, word in enumerate(words, first):
        payload = json.dumps({"line": word}).encode()
        record = Record(f"id-{offset}", payload, "lines", root=f"id-{offset}")
        keys = {"counted": json.dumps([word])}
        relay.say(RowsMessage([Row(("lines", 0), offset, record, keys)]))


def stalled(path: Path) -> int:
    """Make whoever writes the file at *path* wait; return what lets it fail."""
    path.parent.mkdir(parents=True)
    os.mkfifo(path)
    return path


def test_no_cut_is_on_disk_before_the_states_of_an_earlier_one_that_it_names(tmp_path):
    """The disk stalls at the first cut of a batch, and the batch runs again meanwhile."""
    changed = tmp_path / "cuts" / "state" / "changed"
    stall = stalled(changed / "0-1.new")

    async def work():
        async with application(tmp_path, part=COUNTED) as app:
            first = await Relay.of(app, run="first")
            bring(first, ["a"])
            await first.hears(lambda: first.answered == 1)
            first.say(AllRead())
            await app.until_part(lambda tally: tally.state.clean == 0)
            first.close()  # the task's worker is killed; Spark runs the batch again
            second = await Relay.of(app, run="second")
            bring(second, ["a", "a"])
            await second.hears(lambda: len(second.records) == 2)
            second.say(AllRead())
            await app.until_part(lambda t: (t.state.attempt, t.state.clean) == (2, 0))
            reading = os.open(stall, os.O_RDONLY)  # the disk answers, with an error
            await eventually(lambda: app.process.poll() is not None)
            os.close(reading)
            assert not second.finished
            (broken,) = [m for m in app.heard if isinstance(m, Broken)]
            assert "0-1 cannot be written" in broken.reason

    asyncio.run(work())
    files = CutFiles(tmp_path / "cuts")
    cuts = [files.load(cut) for cut in files.cuts()]
    named = {cut for each in cuts for cut in each.changed}
    assert all((changed / f"{cut.batch}-{cut.attempt}").exists() for cut in named)

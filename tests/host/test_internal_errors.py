"""An error that nobody expects, anywhere in a host: it ends, and says why."""

import asyncio
import subprocess

import pytest

from host.hosting import Relay, application
from sojourn.spark.wire.controller import Ask, Broken
from sojourn.spark.wire.relay import AllRead

# Where something raises in the host, once there is a file: a function, and its module.
PLACES = {
    "while it decides": "batch.ledger:Ledger.takes",
    "while it replays": "batch.ledger:Ledger._replay",
    "while it carries out a decision": "operator_runner:OperatorRunner.do",
    "while it hears a relay": "batch.query_runs:Attempts.number",
    "while it hears a processor": "operator_runner:OperatorRunner.said",
    "while it hears the controller": "server:Host._report",
    "while it writes": "batch.cut_store:CutFiles.save",
    "in a task": "operator_runner:OperatorRunner.watch",
    "in a callback": "relays:Relays._send_now",
}


def faulty(folder, place, error):
    """Return a folder of modules with which every Python raises an error at a place."""
    module, _, name = PLACES[place].partition(":")
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(
        f"""
import importlib, os, sys
if "sojourn.spark.host" in sys.orig_argv:
    from pathlib import Path
    module = importlib.import_module("sojourn.spark.host.{module}")
    kind, _, name = "{name}".partition(".")
    before = getattr(getattr(module, kind), name)
    def faulty(*args, **kwargs):
        if Path({str(folder / "now")!r}).exists():
            raise {error}
        return before(*args, **kwargs)
    setattr(getattr(module, kind), name, faulty)
"""
    )
    return folder


@pytest.mark.parametrize("error", ["KeyError('lost')", "OSError('lost')"])
@pytest.mark.parametrize("place", PLACES)
def test_any_error_ends_the_host_with_the_reason(tmp_path, place, error):
    """It would live on with half a memory, and let Spark commit what it has lost."""
    path = faulty(tmp_path / "faulty", place, error)

    async def work():
        if place == "while it replays":
            async with application(tmp_path) as app:
                relay = await Relay.of(app)
                relay.bring(["fine"])
                await relay.hears(lambda: relay.records)
        async with application(tmp_path, path=[path]) as app:
            relay = await Relay.of(app, run="first") if "replays" not in place else None
            if relay is not None:
                relay.bring(["fine"])
                await relay.hears(lambda: relay.records)
            (path / "now").touch()
            again = await Relay.of(app, run="second")
            again.bring(["fine"] * 3)
            app.say(Ask())
            if relay is not None:
                relay.bring(["fine"] * 3, first=1)
            # A batch may end before its records are done; a task looks now and then.
            if place not in ("while it hears a processor", "in a task"):
                again.say(AllRead())
            told = await app.hears(lambda m: isinstance(m, Broken))
            await asyncio.to_thread(app.process.wait, 60)
            assert [m for m in app.heard if isinstance(m, Broken)] == [told]
            await again.hears(lambda: False)
            assert not again.finished
            return told.reason

    kind = error.partition("(")[0]
    reason = asyncio.run(work())
    assert f"the host of part failed: {kind}: " in reason
    assert "lost" in reason
    log = (tmp_path / "shout.log").read_text()
    assert "Traceback" in log
    assert f"{kind}: " in log


def test_the_folder_of_faults_does_no_harm_by_itself(tmp_path):
    path = faulty(tmp_path / "faulty", "while it decides", "KeyError('lost')")

    async def work():
        async with application(tmp_path, path=[path]) as app:
            relay = await Relay.of(app)
            relay.bring(["fine"])
            await relay.hears(lambda: relay.records)
            await relay.end()
            assert relay.finished
            with pytest.raises(subprocess.TimeoutExpired):
                app.process.wait(0)

    asyncio.run(work())

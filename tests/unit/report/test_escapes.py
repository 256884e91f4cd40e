"""What a record contains reaches no terminal as it is: it may be a control sequence."""

import json
import sys

import pytest
from rich.console import Console

from sojourn.cli import main
from sojourn.errors import ApplicationStopped, EngineError
from sojourn.report.events import AsJson, ForPeople
from sojourn.report.json.output import print_json
from sojourn.report.terminal.console import line, say
from sojourn.report.terminal.status import applications_view
from sojourn.spark.host.batch.cut import OpenRecord
from sojourn.spark.host.desk.instructions import StopPart
from sojourn.spark.host.execution import why_it_stops
from sojourn.spark.processor.processor import described
from sojourn.spark.wire.record import Record, Root

# Title, clear, an 8-bit CSI, a bidirectional override: each is obeyed by some terminal.
HOSTILE = "card \x1b]0;yours\x07\x1b[2J\x9b1;1H\u202e\x7f fine"
OBEYED = ("\x1b", "\x07", "\x9b", "\u202e", "\x7f", "\r")


def parse(line):
    """Refuse a line, as functions do."""
    raise ValueError(f"cannot parse {line}")


def stopped():
    """Return the error of an application that such a record has stopped."""
    with pytest.raises(ValueError, match="card") as raised:
        parse(HOSTILE)
    error, traceback = described(raised.value)
    record = Record("lines/0/7", b"", position="lines/0/7")
    stop = StopPart(OpenRecord(Root(("lines", 0), 7), "parse", record), error, traceback)
    return f"sojourn: shop stopped: {ApplicationStopped(why_it_stops(stop))}"


@pytest.mark.parametrize("output", [ForPeople(live=False), AsJson()], ids=["text", "JSON"])
def test_an_error_of_a_run_is_printed_with_its_lines(output, capsys):
    output.error(stopped())
    said = capsys.readouterr().err
    assert not [each for each in OBEYED if each in said]
    assert "card \\x1b]0;yours\\x07" in said
    assert "\nTraceback (most recent call last):\n" in said


@pytest.mark.parametrize("output", [ForPeople(live=False), AsJson()], ids=["text", "JSON"])
def test_notices_and_progress(output, capsys):
    output.notice(HOSTILE)
    output.progress(HOSTILE)
    said = "".join(capsys.readouterr())
    assert not [each for each in OBEYED if each in said]


def test_json_means_what_it_did(capsys):
    print_json({"said": HOSTILE, "größe": "a\nb \U0001f600 \U000e0001"})
    said = capsys.readouterr().out
    assert not [each for each in OBEYED if each in said]
    assert json.loads(said) == {"said": HOSTILE, "größe": "a\nb \U0001f600 \U000e0001"}
    assert '"größe": "a\\nb \U0001f600 ' in said


def test_lines_and_tables(capsys):
    say(f"note: {HOSTILE}\nand more")
    columns = ["name", "started_at", "status", "policy", "state", "waits_for"]
    row = dict.fromkeys(columns, HOSTILE)
    row |= {"pid": 1, "allocation": {}, "nodes": [], "deciding": HOSTILE, "notices": [HOSTILE]}
    Console(width=1000).print(applications_view([row]), line(HOSTILE))
    said = capsys.readouterr().out
    assert not [each for each in OBEYED if each in said]
    assert "\nand more\n" in said


@pytest.mark.parametrize(
    ("error", "status"), [(EngineError(HOSTILE), 3), (RuntimeError(HOSTILE), 1)]
)
def test_errors_of_commands(error, status, capsys, monkeypatch):
    """A defect, too, which is printed with its traceback."""

    def fails():
        raise error

    monkeypatch.setattr("sys.argv", ["sojourn", "policies"])
    monkeypatch.setattr(sys.modules["sojourn.cli.policies"], "names", fails)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == status
    said = capsys.readouterr().err
    assert ("Traceback (most recent call last):\n" in said) == (status == 1)
    assert "card \\x1b]0;yours" in said
    assert not [each for each in OBEYED if each in said]

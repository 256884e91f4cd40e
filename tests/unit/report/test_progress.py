"""What is shown of a command that takes its time: on a terminal, and only there."""

import sys
import time
from contextlib import contextmanager
from importlib import import_module
from io import StringIO
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sojourn.cli import app
from sojourn.report.terminal.progress import working

EXAMPLES = Path(__file__).parents[3] / "examples"
VLD, BEST = str(EXAMPLES / "vld.yaml"), "extract=10,match=11,aggregate=1"
TRACE = ("--trace", str(EXAMPLES / "doubling.csv"), "--faster", "100", "--target-p95", "3s")


class Terminal(StringIO):
    def isatty(self):
        return True


def shown(out, text):
    """Wait until the line says it."""
    until_s = time.monotonic() + 60
    while text not in out.getvalue():
        assert time.monotonic() < until_s, out.getvalue()
        time.sleep(0.001)


def test_on_a_terminal_it_says_what_it_is_at_and_how_far_and_leaves_nothing(monkeypatch):
    out = Terminal()
    monkeypatch.setattr(sys, "stderr", out)
    with working("planning vld", soon_s=0.0, every_s=0.001) as far:
        shown(out, "\r\x1b[Kplanning vld … 0 s")
        far("half of it")
        shown(out, "\r\x1b[Kplanning vld, half of it … ")
    assert out.getvalue().endswith("\r\x1b[K")


def test_the_line_is_gone_whatever_is_raised(monkeypatch):
    out = Terminal()
    monkeypatch.setattr(sys, "stderr", out)
    with pytest.raises(ZeroDivisionError), working("planning vld", soon_s=0.0):  # noqa: PT012
        shown(out, "planning")
        raise ZeroDivisionError
    assert out.getvalue().endswith("\r\x1b[K")


def test_what_is_done_at_once_shows_nothing(monkeypatch):
    out = Terminal()
    monkeypatch.setattr(sys, "stderr", out)
    with working("planning vld"):
        pass
    assert out.getvalue() == ""


def test_elsewhere_it_is_silent(monkeypatch):
    out = StringIO()
    monkeypatch.setattr(sys, "stderr", out)
    with working("planning vld", soon_s=0.0) as far:
        far("half of it")
    assert out.getvalue() == ""


@pytest.mark.parametrize(
    ("module", "arguments", "said"),
    [
        ("cli.plan", ("plan", VLD, "--processors", "22"), ["planning vld"]),
        ("cli.plan", ("explain", VLD, "--processors", "22"), ["planning vld"]),
        ("cli.plan", ("predict", VLD, "--allocation", BEST), ["predicting vld"]),
        ("report.terminal.progress",
         ("simulate", VLD, "--allocation", BEST, "--records", "100"),
         ["loading the simulator"]),
        ("report.terminal.progress", ("rehearse", VLD, *TRACE), ["loading the simulator"]),
        ("report.terminal.progress", ("rehearse", VLD, *TRACE, "--json"),
         ["rehearsing vld", "0:00:03 of 0:00:24"]),
    ],
    ids=["plan", "explain", "predict", "simulate", "rehearse", "rehearse as JSON"],
)  # fmt: skip
def test_commands_that_may_take_long_say_what_they_are_at(monkeypatch, module, arguments, said):
    heard = []

    @contextmanager
    def hears(text):
        heard.append(text)
        yield heard.append

    monkeypatch.setattr(import_module(f"sojourn.{module}"), "working", hears)
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    assert set(said) <= set(heard)


def test_history_counts_the_turns_that_it_reads(monkeypatch, tmp_path):
    heard = []

    @contextmanager
    def hears(text):
        heard.append(text)
        yield heard.append

    file = tmp_path / "h"
    rehearse = ("rehearse", VLD, *TRACE, "--every", "0.1s", "--policy", "static")
    assert CliRunner().invoke(app, (*rehearse, "--history", str(file))).exit_code == 0
    history = import_module("sojourn.cli.history")
    monkeypatch.setattr(history, "working", hears)
    arguments = ("history", str(file), "--html", str(tmp_path / "h.html"))
    assert CliRunner().invoke(app, arguments).exit_code == 0
    assert heard[:3] == [f"reading {file}", "100 turns for the page", "200 turns for the page"]
    assert heard[-1] == "200 turns"

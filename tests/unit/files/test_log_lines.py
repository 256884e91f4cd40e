"""What functions print: whole lines with the time, and never an error."""

import re
import sys
from contextlib import redirect_stdout

import pytest

from sojourn.files.log_lines import StampedLines


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "shout.log"
    with path.open("ab") as file:
        yield path, StampedLines(file.fileno())


def lines(path):
    return [
        re.sub(r"^\d{4}-\d\d-\d\dT[\d:.]{12}Z ", "> ", x) for x in path.read_text().split("\n")
    ]


def test_a_line_is_written_once_it_is_whole(log):
    path, stamped = log
    with redirect_stdout(stamped):
        print("one", "two", end="")  # noqa: T201 - as functions do
        assert path.read_text() == ""
        print("\nthree")  # noqa: T201
        sys.stdout.reconfigure(encoding="latin-1")
        print("half", end="")  # noqa: T201
    assert lines(path) == ["> one two", "> three", ""]
    stamped.end()
    stamped.end()
    assert lines(path) == ["> one two", "> three", "> half", ""]


def test_what_never_ends_is_written_all_the_same(log):
    path, stamped = log
    stamped.write("x" * 70_000)
    assert path.stat().st_size > 70_000


def test_letters_that_cannot_be_written_are_escaped(log):
    path, stamped = log
    stamped.write("\ud800 ü\n")
    assert lines(path) == ["> \\ud800 ü", ""]
    stamped.buffer.write(b"raw\n")
    assert path.read_bytes().endswith(b"raw\n")


def test_a_log_that_cannot_be_written_makes_no_record_fail(tmp_path):
    path = tmp_path / "read-only"
    path.touch()
    with path.open("rb") as file:
        assert StampedLines(file.fileno()).write("lost\n") == len("lost\n")

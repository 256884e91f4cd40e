"""What functions print: whole lines with the time, and never an error; and bounded logs."""

import re
import subprocess
import sys
import time
from contextlib import redirect_stdout

import pytest

from sojourn.files.logs import LogRotation, StampedLines


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


# writes lines for ever, and knows nothing of rotation
WRITER = "import itertools, sys\nfor n in itertools.count(): print(f'{n:0100}', flush=True)"


def test_a_log_that_a_program_writes_to_is_put_aside_again_and_again(tmp_path):
    log, aside = tmp_path / "spark.log", tmp_path / "spark.log.1"
    with (
        LogRotation(tmp_path, most_bytes=10_000, every_s=0.01),
        log.open("ab") as out,
        subprocess.Popen([sys.executable, "-c", WRITER], stdout=out) as writer,
    ):
        try:
            copies, until_s = set(), time.monotonic() + 60
            while len(copies) < 3:
                assert time.monotonic() < until_s, copies
                if aside.exists() and (lines := aside.read_bytes().splitlines()):
                    copies.add(lines[0])
        finally:
            writer.kill()
    assert b"\0" not in log.read_bytes()  # it goes on at the beginning


def test_what_is_long_at_the_start_is_put_aside_and_the_rest_stays(tmp_path):
    (tmp_path / "spark.log").write_text("long" * 100)
    (tmp_path / "spark.log.1").write_text("older")
    (tmp_path / "split.log").write_text("short")
    (tmp_path / "other").write_text("x" * 1000)
    with LogRotation(tmp_path, most_bytes=100):
        pass
    found = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert found == {
        "spark.log": "", "spark.log.1": "long" * 100, "split.log": "short", "other": "x" * 1000,
    }  # fmt: skip


def test_where_there_is_no_room_for_a_copy_the_log_is_emptied_all_the_same(
    tmp_path, monkeypatch
):
    def full(*_files):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("shutil.copyfileobj", full)
    (tmp_path / "spark.log").write_text("long" * 100)
    LogRotation(tmp_path, most_bytes=100).rotate()
    assert [(path.name, path.stat().st_size) for path in tmp_path.iterdir()] == [
        ("spark.log", 0)
    ]


def test_a_folder_that_is_not_there_yet_is_no_problem(tmp_path):
    with LogRotation(tmp_path / "logs"):
        pass

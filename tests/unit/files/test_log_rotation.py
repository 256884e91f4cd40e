"""Logs are bounded while programs write to them."""

import subprocess
import sys
import time

from sojourn.files.log_rotation import LogRotation

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

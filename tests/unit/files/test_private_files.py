"""Nobody but the owner sees what a state folder holds, however careless the umask is."""

import os
import stat
from pathlib import Path

import pytest

from sojourn.errors import BadFile
from sojourn.files.logs import LogRotation
from sojourn.files.private_files import append_to, claim_folder, make_folder
from sojourn.history import HistoryFile
from sojourn.service.state_folder import LastAllocation, StateFolder
from sojourn.spark.driver.state.state_lock import StateLock
from sojourn.spark.host.batch.cut import OpenRecord
from sojourn.spark.task.sink_memory import SinkMemory
from sojourn.spark.wire.record import Record
from unit.history.test_history_file import RUN
from unit.spark.host.word_count import WordCountHost


@pytest.fixture(autouse=True)
def open_to_all():
    """Let everybody do everything with new files, unless the code says otherwise."""
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path):
    return stat.S_IMODE(path.lstat().st_mode)


def exposed(folder):
    """Return what others could see in a folder, with its mode."""
    found = [folder, *folder.rglob("*")]
    return {path.name: oct(mode(path)) for path in found if mode(path) & 0o077}


def test_whatever_is_written_to_a_state_folder_is_private(tmp_path):
    path = tmp_path / "deep" / "state"
    with StateFolder(path, "words") as folder, StateLock(path):
        host = WordCountHost(path / "checkpoints" / "count" / "part")
        for batch in range(3):
            host.relay_comes(batch + 1, batch=batch, attempt=host.files.attempts.number("run"))
            host.merge()
            host.take(batch + 1, ["4111 1111"], first=batch)
            host.work_off()
            host.end_batch(batch + 1)
        record = Record("lines/0/9", b"4111 1111")
        host.files.segments.write(2, [OpenRecord((("lines", 0), 9), "split", record)])
        SinkMemory(path / "memory").note_sink_end(0, 7, 3)
        LastAllocation(path).save({"count": 3})
        make_folder(folder.logs)
        with append_to(folder.logs / "count.log") as log:
            log.write(b"4111 1111\n")
        LogRotation(folder.logs, most_bytes=1).rotate()
        with HistoryFile(folder.history) as history:
            history.begin(RUN)
            assert {p.name for p in path.iterdir()} >= {"history", "history-wal"}
            assert exposed(tmp_path / "deep") == {}
        host.files.close()


def test_an_empty_folder_becomes_private(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    assert mode(folder) == 0o777
    claim_folder(folder)
    assert mode(folder) == 0o700


@pytest.mark.parametrize("bits", [0o710, 0o704, 0o750, 0o777])
def test_a_folder_that_others_can_enter_or_read_is_refused_with_the_repair(tmp_path, bits):
    folder = tmp_path / "of the shop"
    with StateFolder(folder, "shop"):
        pass
    folder.chmod(bits)
    with pytest.raises(BadFile) as raised:
        StateFolder(folder, "shop").__enter__()
    assert str(raised.value) == (
        f"{folder}: is accessible to other users (mode {bits:04o}); "
        f"run `chmod -R go-rwx '{folder}'`, then start again"
    )
    with pytest.raises(BadFile, match="is accessible to other users"):
        StateLock(folder).__enter__()
    folder.chmod(0o700)
    with StateFolder(folder, "shop"):
        pass


def test_folders_that_are_made_survive_a_power_failure(tmp_path, monkeypatch):
    """The entry of each is on disk once the folder above it is synced."""
    synced, fsync = [], os.fsync

    def recorded(number):
        synced.append(Path(f"/proc/self/fd/{number}").readlink())
        fsync(number)

    monkeypatch.setattr(os, "fsync", recorded)
    make_folder(tmp_path / "part" / "state" / "changed")
    above = [tmp_path, tmp_path / "part", tmp_path / "part" / "state"]
    assert synced == above

"""States of an application in one file, and back: all of them, of one moment, or none."""

import json
import multiprocessing
import shutil
from contextlib import closing

import pytest

from sojourn.app.reminder import reminders_of
from sojourn.errors import BadFile, BadInput, EngineError
from sojourn.spark.driver.state.checkpoints import Checkpoints
from sojourn.spark.driver.state.key_states import KeyStates
from sojourn.spark.driver.state.state_lock import StateLock
from sojourn.spark.driver.state.state_transfer import (
    StateBackup,
    export_states,
    finish_import,
    import_states,
)
from sojourn.spark.host.batch.cut_store import CutFiles
from sojourn.spark.host.state.keyed_state import KeyedState
from state_folders import StateWriter, counting, write_until

OLD = {'["a"]': {"n": 1}, '["b"]': {"n": 2}, json.dumps(["k" * 900]): {"n": 3}}
NEW = {'["b"]': {"n": 20}, '["c"]': {"n": 30}}


def written(folder, states, *, app=None, merged=True):
    folder.mkdir(mode=0o700)
    writer = StateWriter(folder, app or counting())
    writer.commit(states)
    if merged:
        writer.merge()
    writer.commit({})
    return folder


def kept(folder):
    """Return the states of all keys, and the reminders."""
    states = KeyStates(folder)
    found = {state.key: state.values for state in states.every("count")}
    with states.moment("count") as (_, moment):
        return found, dict(moment.states(reminders_of("count")))


@pytest.fixture
def folder(tmp_path):
    return written(tmp_path / "state", OLD)


@pytest.mark.parametrize("merged", [False, True])
def test_what_is_exported_replaces_the_states_of_another_folder(tmp_path, folder, merged):
    other, backup = written(tmp_path / "other", NEW, merged=merged), tmp_path / "words.states"
    done = export_states(other, backup)
    assert (done.operators, done.entries) == (("count",), len(NEW) + 1)
    before = kept(folder)[1]
    assert import_states(folder, backup) == done
    assert kept(folder) == kept(other)
    assert kept(folder) == (NEW, before)
    assert (backup.stat().st_mode & 0o777, StateBackup(backup).check()) == (0o600, done.entries)


def test_a_host_resumes_with_what_was_imported(tmp_path, folder):
    """And what was logged since the commit is worked out again."""
    backup, part = tmp_path / "words.states", Checkpoints(folder).cuts("count")
    files = CutFiles(part, "layout")
    base = files.last(1)
    list(files.log.recover(base))
    export_states(written(tmp_path / "other", NEW), backup)
    files.close()
    import_states(folder, backup)
    with closing(CutFiles(part, "layout")) as after:
        state = KeyedState(after.state)
        state.restore(after.load(base).changed, batch=base.batch)
        assert [bool(state.of("count", key)) for key in ('["a"]', '["b"]', '["c"]')] == [
            False, True, True,
        ]  # fmt: skip
        assert not any((part / "log").iterdir())


def test_a_backup_is_of_one_moment_while_a_host_writes(tmp_path):
    context = multiprocessing.get_context("fork")
    begun, stop = context.Event(), context.Event()
    folder = tmp_path / "state"
    writer = context.Process(target=write_until, args=(folder, begun, stop))
    writer.start()
    try:
        assert begun.wait(60)
        for number in range(20):
            export_states(folder, tmp_path / f"{number}.states")
            backup = StateBackup(tmp_path / f"{number}.states")
            states = dict(backup.states("count"))
            assert (len(states), len(set(states.values()))) == (200, 1)
    finally:
        stop.set()
        writer.join()


@pytest.mark.parametrize("cut", [0, 5, 30, -30, -1])
def test_a_backup_that_is_truncated_is_refused_and_changes_nothing(tmp_path, folder, cut):
    backup, before = tmp_path / "words.states", kept(folder)
    export_states(written(tmp_path / "other", NEW), backup)
    backup.write_bytes(backup.read_bytes()[:cut])
    with pytest.raises(BadFile, match=r"words.states: is (truncated|not a backup)"):
        import_states(folder, backup)
    assert kept(folder) == before


def test_a_backup_that_is_damaged_is_refused_and_changes_nothing(tmp_path, folder):
    backup, before = tmp_path / "words.states", kept(folder)
    export_states(written(tmp_path / "other", NEW), backup)
    content = backup.read_bytes()
    for place in range(len(content)):
        damaged = bytearray(content)
        damaged[place] ^= 1
        backup.write_bytes(damaged)
        with pytest.raises(BadFile):
            import_states(folder, backup)
    assert kept(folder) == before
    with pytest.raises(BadFile, match="cannot be read: No such file"):
        import_states(folder, tmp_path / "nothing")


@pytest.mark.parametrize(
    ("app", "problem"),
    [
        (counting({"n": ""}), "field n was string, now it is bigint"),
        (counting({"n": 0, "more": 1}), "there is no field more"),
        (counting(schema="word string, n int", by=("word", "n")), "its key was string, int"),
    ],
)
def test_states_of_another_form_are_refused(tmp_path, folder, app, problem):
    backup, before = tmp_path / "words.states", kept(folder)
    export_states(written(tmp_path / "other", {}, app=app), backup)
    with pytest.raises(BadInput, match=problem):
        import_states(folder, backup)
    assert kept(folder) == before


def test_states_of_an_operator_that_there_is_not_are_refused(tmp_path, folder):
    backup = tmp_path / "words.states"
    export_states(folder, backup)
    recorded = folder / "application.json"
    recorded.write_text(recorded.read_text().replace('"count"', '"number"'))
    with pytest.raises(BadInput, match="words has no operator 'count' with a state"):
        import_states(folder, backup)


def test_an_application_that_runs_or_never_ran_is_refused(tmp_path, folder):
    backup = tmp_path / "words.states"
    export_states(folder, backup)
    with StateLock(folder), pytest.raises(EngineError, match="another process uses the state"):
        import_states(folder, backup)
    new = tmp_path / "new"
    new.mkdir(mode=0o700)
    Checkpoints(new).keep(counting(), "cluster")
    with pytest.raises(BadInput, match="has not committed anything yet"):
        import_states(new, backup)
    with pytest.raises(BadInput, match="is not the state folder"):
        import_states(tmp_path, backup)


def test_an_import_that_was_begun_is_finished_by_the_next_start(tmp_path, folder):
    """As after a crash, before it was carried out or in the middle of it."""
    backup = tmp_path / "words.states"
    export_states(written(tmp_path / "other", NEW), backup)
    state = Checkpoints(folder)
    assert not finish_import(state)
    for _ in range(2):
        shutil.copy(backup, folder / "import.states")
        assert finish_import(state)
        assert kept(folder)[0] == NEW
    assert not (folder / "import.states").exists()
    shutil.copy(backup, folder / "import.states.new")  # nothing was begun
    assert not finish_import(state)


def test_nothing_to_export_is_said(tmp_path):
    folder = written(tmp_path / "state", {})
    recorded = json.loads((folder / "application.json").read_text())
    (folder / "application.json").write_text(json.dumps({**recorded, "states": {}}))
    with pytest.raises(BadInput, match="no operator of words keeps a state for each key"):
        export_states(folder, tmp_path / "words.states")


def test_a_file_that_cannot_be_written_is_named(folder, tmp_path):
    with pytest.raises(EngineError, match=r"words.states cannot be written: "):
        export_states(folder, tmp_path / "nothing" / "words.states")
    assert [path.name for path in tmp_path.iterdir()] == ["state"]

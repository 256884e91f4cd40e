"""The shared folder belongs to one state folder, and every node must reach it: no Spark."""

import os
import subprocess

import pytest

import sojourn as sj
from sojourn.errors import BadFile, BadInput, EngineError
from sojourn.spark.driver.layout import Layout
from sojourn.spark.driver.settings import SparkSettings
from sojourn.spark.driver.spark_engine import SparkEngine
from sojourn.spark.driver.state.checkpoints import Checkpoints
from sojourn.spark.driver.state.shared_folder import (
    SharedState,
    answer_token,
    written_by_tasks,
)

QUERIES = ["sums", "sink counts"]


def words(*, aggregated=False, deduplicated=False):
    app = sj.App("words")
    lines = app.source("lines", schema="word string")

    @app.operator(reads=lines.by("word"), emits="word string", state={"n": 0})
    def count(state, word):
        state["n"] += 1
        yield (word,)

    if aggregated:
        app.sink(app.aggregate("sums", reads=count, by="word", columns={"n": "count(*)"}))
    app.sink(count, deduplicate=deduplicated, name="counts")
    return Layout(app, "words:app")


def test_a_state_by_key_is_written_beside_the_driver_alone():
    assert written_by_tasks(words()) == []


def test_aggregations_and_sinks_without_repetitions_are_written_by_tasks():
    assert written_by_tasks(words(aggregated=True)) == ["sums"]
    assert written_by_tasks(words(deduplicated=True)) == ["sink counts"]


def test_a_node_that_has_the_folder_answers(tmp_path):
    (tmp_path / "asked").write_text("token")
    assert answer_token(tmp_path / "asked", tmp_path / "answered", "token") == ""
    assert (tmp_path / "answered").read_text() == "token"


def test_a_node_says_why_it_does_not_have_the_folder(tmp_path):
    asked, answered = tmp_path / "asked", tmp_path / "answered"
    assert answer_token(asked, answered, "token") == "a different folder is mounted there"
    asked.write_text("of another run")
    assert answer_token(asked, answered, "token") == "a different folder is mounted there"
    missing = tmp_path / "missing" / "asked"
    assert answer_token(missing, answered, "token") == "there is no such folder"
    assert not answered.exists()
    problem = answer_token(asked, tmp_path, "of another run")  # a folder cannot be written
    assert problem == f"it cannot be written there: {os.strerror(21)}"
    assert answer_token(tmp_path, answered, "").startswith("it cannot be read there")


@pytest.fixture
def state(tmp_path):
    folder = tmp_path / "state"
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture
def nfs(tmp_path):
    return tmp_path / "nfs" / "orders"


def used(state, given=None):
    """Use a folder, as a start does that succeeds; return where it is."""
    shared = SharedState(state, given)
    kept = Checkpoints(state)
    shared.claim(QUERIES, (kept.form() or {}).get("shared"))
    kept = Checkpoints(state, shared.folder, frozenset(QUERIES))
    kept.keep(sj.App("shop"), "cluster")
    for query in QUERIES:
        kept.checkpoint(query).mkdir(parents=True, exist_ok=True)
    return shared.folder


def test_checkpoints_of_tasks_are_shared_and_all_others_stay_with_the_driver(state, nfs):
    kept = Checkpoints(state, nfs, frozenset(QUERIES))
    assert kept.checkpoint("sums") == nfs / "checkpoints" / "sums"
    assert kept.checkpoint("sink counts") == nfs / "checkpoints" / "sink counts"
    assert kept.checkpoint("count") == state / "checkpoints" / "count"
    assert kept.cuts("count") == state / "checkpoints" / "count" / "part"


def test_by_default_it_is_inside_the_state_folder(state):
    assert used(state) == state / "shared"
    assert used(state) == state / "shared"


def test_the_next_start_continues_with_the_same_folder(state, nfs):
    used(state, nfs)
    assert nfs.stat().st_mode & 0o777 == 0o700
    used(state, nfs)


def test_a_folder_that_was_moved_continues(state, nfs):
    used(state)
    nfs.parent.mkdir()
    (state / "shared").rename(nfs)
    used(state, nfs)


def test_a_folder_of_another_state_is_refused(state, nfs, tmp_path):
    used(state, nfs)
    other = tmp_path / "other"
    other.mkdir(mode=0o700)
    with pytest.raises(BadFile, match=f"belongs to another state folder than {other}"):
        used(other, nfs)


@pytest.mark.parametrize("given", [True, False])
def test_a_folder_that_lacks_what_was_shared_is_refused(state, nfs, tmp_path, given):
    used(state, nfs)
    other = tmp_path / "not mounted" if given else None
    told = (
        f"does not have the shared part of the state in {state}, which was last used in {nfs}"
    )
    with pytest.raises(BadFile, match=told):
        used(state, other)


def test_a_folder_with_anything_else_in_it_is_refused(state, nfs):
    nfs.mkdir(parents=True, mode=0o700)
    (nfs / "thesis.tex").write_text("")
    with pytest.raises(BadFile, match="is not empty, and not a shared folder"):
        used(state, nfs)


def test_a_start_that_failed_binds_nothing(state, nfs, tmp_path):
    SharedState(state, nfs).claim(QUERIES, None)  # and then it failed
    used(state, tmp_path / "other")
    with pytest.raises(BadInput, match="are both"):
        SharedState(state, state)


def test_two_starts_that_take_a_folder_at_once_do_not_share_it(state, nfs, monkeypatch):
    shared = SharedState(state, nfs)
    nfs.mkdir(parents=True, mode=0o700)
    (nfs / "state-id").write_text("of another")
    monkeypatch.setattr(SharedState, "_mark", lambda _self: None)  # it was not there yet
    monkeypatch.setattr(type(nfs), "iterdir", lambda _self: iter(()))
    with pytest.raises(BadFile, match="state-id: cannot be written: File exists"):
        shared.claim(QUERIES, None)


def test_a_mark_that_cannot_be_read_is_named(state, nfs):
    (nfs / "state-id").mkdir(parents=True)
    with pytest.raises(BadFile, match="state-id: cannot be read"):
        used(state, nfs)


def test_checkpoints_of_tasks_in_the_state_folder_are_refused_with_the_command(state, nfs):
    kept = Checkpoints(state)
    kept.keep(sj.App("shop"), "cluster")
    for query in (*QUERIES, "count"):
        kept.checkpoint(query).mkdir(parents=True)
    with pytest.raises(BadFile) as raised:
        used(state, nfs)
    command = str(raised.value).split("`")[1]
    subprocess.run(command, shell=True, check=True)
    nfs.chmod(0o700)
    assert {path.name for path in (nfs / "checkpoints").iterdir()} == set(QUERIES)
    used(state, nfs)


def test_a_fresh_start_deletes_it_and_then_begins_anew(state, nfs):
    used(state, nfs)
    (nfs / "file").write_text("")
    SharedState(state, nfs).forget()
    assert list(nfs.iterdir()) == []
    with pytest.raises(BadFile, match="--fresh"):  # until the state folder is cleared as well
        used(state, nfs)
    (state / "application.json").unlink()
    used(state, nfs)


def test_the_engine_forgets_its_shared_folder(state, nfs):
    used(state, nfs)
    settings = SparkSettings(state=state, shared_state=nfs)
    SparkEngine(sj.App("shop"), "shop:app", settings).forget()
    assert list(nfs.iterdir()) == []
    SparkEngine(sj.App("shop"), "shop:app", SparkSettings()).forget()  # it keeps nothing


def test_a_fresh_start_deletes_nothing_of_another_state(state, nfs, tmp_path):
    used(state, nfs)
    other = tmp_path / "other"
    other.mkdir(mode=0o700)
    SharedState(other, nfs).forget()
    SharedState(other, tmp_path / "missing").forget()
    used(state, nfs)


def test_what_cannot_be_deleted_is_named(state, nfs, monkeypatch):
    used(state, nfs)

    def refuse(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("shutil.rmtree", refuse)
    with pytest.raises(EngineError, match="checkpoints cannot be removed: Permission denied"):
        SharedState(state, nfs).forget()

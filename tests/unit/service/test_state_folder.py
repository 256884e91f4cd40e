import json
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sojourn as sj
from processes import started
from sojourn.errors import BadAllocation, BadFile, EngineError
from sojourn.service.first_plan import first_plan, first_topology
from sojourn.service.state_folder import LastAllocation, StateFolder
from sojourn.spark.driver.state.state_lock import StateLock
from sojourn.topology import Arrival, Operator, Topology


def test_a_new_folder_is_made_and_marked(tmp_path):
    with StateFolder(tmp_path / "deep" / "state", "words") as state:
        assert state.path.stat().st_mode & 0o777 == 0o700
    with StateFolder(state.path, "words"):
        pass


def test_one_run_uses_it_at_a_time(tmp_path):
    with (
        StateFolder(tmp_path, "words"),
        pytest.raises(EngineError, match=rf"used by another run, pid {os.getpid()}; .*--state"),
        StateFolder(tmp_path, "words"),
    ):
        pass


def test_a_killed_run_does_not_keep_it(tmp_path):
    held = (
        "import pathlib, sys; from sojourn.service.state_folder import StateFolder\n"
        "with StateFolder(pathlib.Path(sys.argv[1]), 'words'):\n"
        "    print('held', flush=True); input()"
    )
    with started(
        [sys.executable, "-c", held, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        process.stdout.readline()
        with (
            pytest.raises(EngineError, match=f"pid {process.pid}"),
            StateFolder(tmp_path, "words"),
        ):
            pass
    with StateFolder(tmp_path, "words"):
        pass


def test_the_state_of_another_application_is_refused(tmp_path):
    with StateFolder(tmp_path, "words"):
        pass
    with pytest.raises(BadFile, match="is the state of words, not of votes"):
        StateFolder(tmp_path, "votes").__enter__()


def test_what_an_engine_wrote_is_known_as_well(tmp_path):
    (tmp_path / "application.json").write_text(json.dumps({"application": "words"}))
    with StateFolder(tmp_path, "words"):
        pass
    (tmp_path / "run.json").unlink()
    with pytest.raises(BadFile, match="is the state of words"):
        StateFolder(tmp_path, "votes").__enter__()


def test_a_folder_with_anything_else_in_it_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(BadFile, match="is not empty, and not a state folder"):
        StateFolder(tmp_path, "words").__enter__()
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize("text", ["{", "[]", "{}"])
def test_a_mark_that_is_not_ours_is_refused(tmp_path, text):
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(BadFile, match="is not a file of sojourn"):
        StateFolder(tmp_path, "words").__enter__()


def test_a_path_that_is_no_folder_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(BadFile, match=r"cannot be used: .*choose another with --state"):
        StateFolder(tmp_path / "file", "words").__enter__()


def test_what_an_engine_left_that_failed_to_start_is_no_reason_to_refuse(tmp_path):
    with StateLock(tmp_path):
        (tmp_path / "logs").mkdir()
    with StateFolder(tmp_path, "words"):
        pass


def test_to_forget_keeps_the_history_alone(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    kept = tmp_path / "elsewhere" / "precious"
    kept.write_text("")
    with StateFolder(tmp_path / "state", "words") as state:
        (state.path / "checkpoints" / "split").mkdir(parents=True)
        (state.path / "application.json").write_text("{}")
        (state.path / "link").symlink_to(tmp_path / "elsewhere")
        state.history.write_text("turns")
        with StateLock(state.path):
            state.forget()
        left = sorted(path.name for path in state.path.iterdir())
    assert left == ["engine.lock", "history", "lock", "run.json"]
    assert kept.exists()


def test_what_cannot_be_forgotten_is_named(tmp_path, monkeypatch):
    def refuse(_path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("shutil.rmtree", refuse)
    with StateFolder(tmp_path, "words") as state:
        (tmp_path / "checkpoints").mkdir()
        with pytest.raises(EngineError, match="checkpoints cannot be removed: Permission"):
            state.forget()


def test_a_lock_that_cannot_be_had_is_named(tmp_path):
    (tmp_path / "lock").mkdir()
    with pytest.raises(BadFile, match="lock: cannot be written"):
        StateFolder(tmp_path, "words").__enter__()


# -- what an application begins with -----------------------------------------------------------


@pytest.fixture
def words():
    app = sj.App("words")
    lines = app.source("lines", schema="line string")

    @app.operator(reads=lines, emits="word string", sends=8.5, min_processors=2)
    def split(line):
        yield from ((word,) for word in line.split())

    @app.operator(reads=split, emits="word string", service_s=0.25, max_processors=4)
    def check(word):
        yield (word,)

    app.sink(app.aggregate("count", reads=check, by="word", columns={"n": "count(*)"}))
    return app


def test_hints_come_before_guesses(words):
    loads = first_topology(words, {"lines": 3.0, "other": 1.0}).loads
    assert {name: load.service_s for name, load in loads.items()} == {
        "split": 0.01, "check": 0.25, "count": 0.01,
    }  # fmt: skip
    assert first_topology(words, {}).rates == {"split": 1.0, "check": 8.5, "count": 8.5}


def test_what_spark_runs_itself_keeps_its_processors(words):
    """They cannot be changed while it runs, so nobody should decide to."""
    topology = first_topology(words, {})
    assert topology.operator["count"].max_processors == 1
    assert topology.operator["split"].max_processors is None


def test_it_starts_with_what_is_asked_for_and_else_the_fewest(words):
    topology = first_topology(words, {})
    fewest = first_plan(topology, {}, None)
    assert fewest.allocation == {"split": 2, "check": 1, "count": 1}
    asked = first_plan(topology, {"check": 3}, 6)
    assert asked.allocation == {"split": 2, "check": 3, "count": 1}
    assert asked.reason == "check=3 (--start); split=2, count=1 (min_processors)"
    with pytest.raises(BadAllocation, match="max_processors, 4"):
        first_plan(topology, {"check": 5}, None)
    with pytest.raises(BadAllocation, match="6 processors in all is above the maximum, 5"):
        first_plan(topology, {"check": 3}, 5)


def test_what_operators_had_last_is_kept_within_the_bounds_of_now(words):
    topology = first_topology(words, {})
    last = {"split": 1, "check": 9, "count": 3, "gone": 7}
    begun = first_plan(topology, {}, None, last)
    assert begun.allocation == {"split": 2, "check": 4, "count": 1}
    assert begun.reason == (
        "split=2, check=4, count=1 (as in the last run, within the current bounds)"
    )


@given(
    last=st.dictionaries(st.sampled_from("abcd"), st.integers(1, 1000)),
    asked=st.dictionaries(st.sampled_from("abc"), st.integers(1, 5)),
    most=st.none() | st.integers(20, 2000),
)
def test_what_is_begun_with_never_breaks_a_bound(last, asked, most):
    topology = Topology(
        name="bounded",
        arrivals=(Arrival(name="in", per_s=1.0, into="a"),),
        operators=(
            Operator(name="a", service_s=0.1, emits={"b": 1}),
            Operator(name="b", service_s=0.1, min_processors=1, max_processors=50),
            Operator(name="c", service_s=0.1, max_processors=5),
        ),
    )
    begun = first_plan(topology, asked, most, last).allocation
    assert begun | asked == begun
    assert list(begun) == ["a", "b", "c"]
    assert all(
        o.min_processors <= begun[o.name] <= (o.max_processors or 1000)
        for o in topology.operators
    )
    assert most is None or sum(begun.values()) <= most
    if most is None:
        assert begun["a"] == asked.get("a", last.get("a", 1))


def test_the_next_start_reads_the_allocation_that_was_saved_last(tmp_path):
    last = LastAllocation(tmp_path / "state")
    assert last.read() == {}
    last.save({"split": 3, "count": 1})
    last.save({"split": 4, "count": 1})
    assert LastAllocation(tmp_path / "state").read() == {"split": 4, "count": 1}


@pytest.mark.parametrize("text", ["", "[]", '{"split": 0}', '{"split": "3"}', "\xff"])
def test_an_invalid_allocation_is_ignored(tmp_path, text):
    """The loop finds out in a moment; a start that fails would be worse."""
    (tmp_path / "allocation.json").write_text(text, encoding="latin-1")
    assert LastAllocation(tmp_path).read() == {}


@contextmanager
def unwritable(folder):
    """Put a folder where the new version of the file is written."""
    there = folder / "allocation.json.new"
    there.mkdir()
    yield
    there.rmdir()


@given(turns=st.lists(st.tuples(st.integers(1, 3), st.booleans())))
def test_there_is_a_failure_exactly_while_another_allocation_is_saved(turns):
    """Whatever could be written: the old file stays whole, and a later turn tries again."""
    with TemporaryDirectory() as folder:
        last, saved = LastAllocation(Path(folder)), {}
        for processors, fails in turns:
            now = {"split": processors}
            if fails:
                with unwritable(Path(folder)):
                    last.save(now)
            else:
                last.save(now)
                saved = now
            assert LastAllocation(Path(folder)).read() == saved
            assert bool(last.failure) == (saved != now)


def test_a_full_disk_is_named_and_the_allocation_before_remains(small_disk):
    state = small_disk / "state"
    last = LastAllocation(state)
    last.save({"split": 3})
    with pytest.raises(OSError, match="No space left"):
        (small_disk / "filled").write_bytes(bytes(1 << 20))
    last.save({"split": 4})
    assert last.failure.endswith(f"No space left on device; make room in {state}")
    assert json.loads((state / "allocation.json").read_text()) == {"split": 3}
    (small_disk / "filled").unlink()
    last.save({"split": 4})
    assert (last.failure, LastAllocation(state).read()) == ("", {"split": 4})

"""The state folder of a run, which a start opens first and a failed start must leave."""

import tempfile
from contextlib import ExitStack, suppress

import pytest

import sojourn as sj
from sojourn.decide.plan import Plan
from sojourn.errors import BadInput, EngineError
from sojourn.spark.driver.layout import Layout
from sojourn.spark.driver.run.run_end import RunEnd
from sojourn.spark.driver.run.run_state import open_state
from sojourn.spark.driver.run.start_request import StartRequest
from sojourn.spark.driver.settings import SparkSettings
from sojourn.spark.driver.state.state_lock import StateLock


def request(state=None, *, deduplicate=False, **settings):
    app = sj.App("echo")

    @app.operator(reads=app.source("lines", schema="line string"), emits="line string")
    def same(line):
        yield (line,)

    app.sink(same, name="once", deduplicate=deduplicate)
    return StartRequest(
        layout=Layout(app, "echo:app"),
        settings=SparkSettings(state=state, **settings),
        plan=Plan.here({"same": 1}),
        identity=None,
        end=RunEnd(),
        progress=lambda _line: None,
    )


@pytest.fixture
def temporary(short_folder, monkeypatch):
    """Return the folder for temporary ones, which is empty."""
    monkeypatch.setattr(tempfile, "tempdir", str(short_folder))
    return short_folder


def test_a_state_that_is_not_kept_ends_with_the_run(temporary):
    with ExitStack() as stack:
        state = open_state(request(), stack)
        assert state.temporary.parent == temporary
        assert state.checkpoints.folder.parent == state.temporary
        assert state.checkpoints.folder.is_dir()
    assert not list(temporary.iterdir())


@pytest.mark.parametrize("fails", [False, True])
def test_a_state_is_locked_until_its_run_ends_or_a_later_step_of_the_start_fails(
    tmp_path, fails
):
    folder = tmp_path / "state"
    with suppress(ZeroDivisionError), ExitStack() as stack:
        state = open_state(request(folder), stack)
        assert (state.checkpoints.folder, state.temporary) == (folder, None)
        with pytest.raises(EngineError, match="another process uses the state"):
            open_state(request(folder), stack)
        assert 1 / (not fails)
    with StateLock(folder):
        assert folder.is_dir()


def test_a_shared_folder_without_a_kept_state_is_refused_and_leaves_nothing(temporary):
    with (
        pytest.raises(BadInput, match="needs a state folder that is kept as well"),
        ExitStack() as stack,
    ):
        open_state(request(shared_state=temporary / "shared", deduplicate=True), stack)
    assert not list(temporary.iterdir())

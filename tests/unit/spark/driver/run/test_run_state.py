"""The state folder of a run, which a start opens first and a failed start must leave."""

from contextlib import ExitStack, suppress

import pytest

from sojourn.errors import BadInput, EngineError
from sojourn.spark.driver.run.run_state import open_state
from sojourn.spark.driver.state.state_lock import StateLock


def test_a_state_that_is_not_kept_ends_with_the_run(request_start, temporary):
    with ExitStack() as stack:
        state = open_state(request_start(), stack)
        assert state.temporary.parent == temporary
        assert state.checkpoints.folder.parent == state.temporary
        assert state.checkpoints.folder.is_dir()
    assert not list(temporary.iterdir())


@pytest.mark.parametrize("fails", [False, True])
def test_a_state_is_locked_until_its_run_ends_or_a_later_step_of_the_start_fails(
    request_start, tmp_path, fails
):
    folder = tmp_path / "state"
    with suppress(ZeroDivisionError), ExitStack() as stack:
        state = open_state(request_start(folder), stack)
        assert (state.checkpoints.folder, state.temporary) == (folder, None)
        with pytest.raises(EngineError, match="another process uses the state"):
            open_state(request_start(folder), stack)
        assert 1 / (not fails)
    with StateLock(folder):
        assert folder.is_dir()


def test_a_shared_folder_without_a_kept_state_is_refused_and_leaves_nothing(
    request_start, temporary
):
    request = request_start(shared_state=temporary / "shared", deduplicate=True)
    with (
        pytest.raises(BadInput, match="needs a state folder that is kept as well"),
        ExitStack() as stack,
    ):
        open_state(request, stack)
    assert not list(temporary.iterdir())

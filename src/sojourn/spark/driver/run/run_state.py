"""The state folder of a run: locked, and without leftovers of killed runs."""

import shutil
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from sojourn.errors import BadInput
from sojourn.files.logs import LogRotation
from sojourn.spark.driver.run.start_request import StartRequest
from sojourn.spark.driver.state.checkpoints import Checkpoints
from sojourn.spark.driver.state.shared_folder import SharedState, written_by_tasks
from sojourn.spark.driver.state.state_lock import StateLock
from sojourn.spark.driver.state.state_transfer import finish_import

# The prefix of temporary folders, and a name as long as theirs.
_TEMPORARY = "sojourn-"
_LIKE_TEMPORARY = f"{_TEMPORARY}xxxxxxxx"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunState:
    checkpoints: Checkpoints
    lock: int
    """An open file; processes that inherit it keep the state locked until they end."""
    temporary: Path | None = None
    """The temporary folder that contains the state, if no other was given."""


def open_state(request: StartRequest, stack: ExitStack) -> RunState:
    """Lock the state folder, and rotate its logs, until *stack* ends."""
    request.layout.check_sockets(Path(tempfile.gettempdir()) / _LIKE_TEMPORARY)
    temporary = None
    if (folder := request.settings.state) is None:
        temporary = temporary_folder(stack)
        folder = temporary / "state"
    lock = stack.enter_context(StateLock(folder.absolute(), request.progress))
    checkpoints = _checkpoints(request, folder.absolute())
    stack.enter_context(LogRotation(checkpoints.logs))
    return RunState(checkpoints=checkpoints, lock=lock.file, temporary=temporary)


def temporary_folder(stack: ExitStack) -> Path:
    """Return a new folder, which is removed when *stack* ends."""
    folder = Path(tempfile.mkdtemp(prefix=_TEMPORARY))
    stack.callback(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _checkpoints(request: StartRequest, folder: Path) -> Checkpoints:
    """Return the checkpoints of queries, after removing leftovers of killed runs."""
    state = _divided(request, folder)
    state.remove_leftovers(request.layout.parts)
    if finish_import(state):
        request.progress("an import of states that was begun is complete now")
    for query, batches in state.drop_torn_batches().items():
        request.progress(
            f"{query}: Spark's files of batch {min(batches)} are incomplete, as after a "
            f"power failure; resuming after batch {min(batches) - 1}"
        )
    return state


def _divided(request: StartRequest, folder: Path) -> Checkpoints:
    """Return the checkpoints of queries; claim the shared folder if tasks write to it."""
    queries, settings = written_by_tasks(request.layout), request.settings
    if not queries:
        return Checkpoints(folder)
    if settings.shared_state is not None and settings.state is None:
        raise BadInput(
            f"the shared folder {settings.shared_state} needs a state folder that is "
            "kept as well; give state too"
        )
    shared = SharedState(folder, settings.shared_state)
    before = Checkpoints(folder).form() or {}
    shared.claim(queries, before.get("shared"))
    return Checkpoints(folder, shared.folder, frozenset(queries))

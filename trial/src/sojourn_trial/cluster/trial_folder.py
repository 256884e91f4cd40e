"""The folder of a trial cluster: claimed at the start, cleaned up at the end."""

import shutil
import tempfile
from pathlib import Path

import psutil

from sojourn.errors import BadFile, EngineError
from sojourn_trial.cluster.machine_processes import end, processes_of
from sojourn_trial.cluster.trial_network import TrialNetwork
from sojourn_trial.cluster.trial_state import STATE, TrialState

_GRACE_S = 5.0


def claim_folder(wanted: Path | None, state: TrialState) -> Path:
    """Return a folder with *state* in it: the *wanted* one, or a temporary one.

    The remains of a dead cluster are removed first. Raise `EngineError` if a cluster runs
    there, and `BadFile` if the folder is not empty or cannot be used.
    """
    if wanted is None:
        folder = Path(tempfile.mkdtemp(prefix="sojourn-cluster-"))
        state.write(folder)
        return folder
    folder = wanted.absolute()
    there = TrialState.read(folder)
    if there is not None and (there.runs or there.starter.runs):
        raise EngineError(
            f"a trial cluster already runs in {folder} ({there.master or 'it is starting'}); "
            "use it, end it with `sojourn cluster stop`, or choose another --folder"
        )
    if there is not None:
        end_state(there, folder)  # its starter was killed, or the machine restarted
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise BadFile(str(folder), "is not empty", "choose another --folder, or remove it")
        folder.chmod(0o700)
        # of two concurrent starts, only one can create the file
        (folder / STATE).touch(0o600, exist_ok=False)
    except FileExistsError as error:
        raise EngineError(f"a trial cluster is just being started in {folder}") from error
    except OSError as error:
        raise BadFile(
            str(folder), f"cannot be used: {error.strerror}", "choose another --folder"
        ) from error
    state.write(folder)
    return folder


def end_cluster(folder: Path) -> bool:
    """End the cluster in *folder*, and remove the folder; return False if there is none.

    Processes and networks of others are safe, even if they now have the same pids and names.
    """
    state = TrialState.read(folder)
    if state is None:
        return False
    end_state(state, folder)
    return True


def end_state(state: TrialState, folder: Path) -> None:
    """End the processes and the network in *state*, and remove *folder*."""
    network, workers = network_of(state), range(1, state.machines + 1)

    def find() -> set[psutil.Process]:
        found = processes_of(state.marks, state.processes)
        return found if network is None else found | network.processes(workers)

    end(state.processes, find, _GRACE_S)
    if network is not None:
        network.remove(workers)
    # remove the state last, so that an interrupted cleanup can be repeated
    for each in folder.iterdir():
        if each.name != STATE:
            if each.is_dir():
                shutil.rmtree(each)
            else:
                each.unlink()
    shutil.rmtree(folder)


def network_of(state: TrialState) -> TrialNetwork | None:
    """Return the network of a cluster; None if it has none, or it no longer exists."""
    if state.network is None:
        return None
    network = TrialNetwork(number=state.network, token=state.token)
    return network if network.ours else None

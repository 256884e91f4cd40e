"""Exports the states of an application to a file, and imports them.

An import is atomic: the file is verified, then copied into the state folder. From then on it
is completed, by the next start if necessary. One transaction per part replaces the states of
its operators.
"""

from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

from sojourn.app.reminder import reminders_of
from sojourn.errors import BadInput
from sojourn.spark.driver.state.checkpoints import Checkpoints
from sojourn.spark.driver.state.key_states import KeyStates
from sojourn.spark.driver.state.state_backup import BackupHeader, StateBackup, write_backup
from sojourn.spark.driver.state.state_form import StateForm
from sojourn.spark.driver.state.state_lock import StateLock
from sojourn.spark.host.batch.cut_store import CutFiles
from sojourn.spark.host.state.expiry import expiry_of

__all__ = ["Transferred", "export_states", "finish_import", "import_states"]

_PENDING = "import.states"


@dataclass(frozen=True, slots=True)
class Transferred:
    """The result of an export or import."""

    operators: tuple[str, ...]
    entries: int
    """States, with reminders and expiry times."""


def _names_of(operator: str) -> tuple[str, ...]:
    """Return the names of an operator's states, reminders and expiry in a host's store."""
    return operator, reminders_of(operator), expiry_of(operator)


def export_states(folder: Path, path: Path) -> Transferred:
    """Write the states of all operators to the file at *path*; the application may be running.

    The states of a part are a consistent snapshot, as of its last commit.
    """
    states = KeyStates(folder)
    if not states.forms:
        raise BadInput(f"no operator of {states.application} keeps a state for each key")
    recorded = (states.checkpoints.form() or {})["states"]
    with ExitStack() as stack:
        moments = {part: stack.enter_context(states.moment(part)) for part in states.parts}
        header = BackupHeader(
            application=states.application,
            forms={operator: recorded[operator] for operator in states.forms},
            batches={part: batch for part, (batch, _) in moments.items()},
        )
        found = {
            name: moments[states.part_of(operator)][1].states(name)
            for operator in states.forms
            for name in _names_of(operator)
        }
        return Transferred(tuple(states.forms), write_backup(path, header, found))


def import_states(folder: Path, path: Path) -> Transferred:
    """Replace the states of all operators in the file at *path*, atomically.

    Raise `BadInput` if the application has no states of that form, and `EngineError` if it is
    running.
    """
    states, backup = KeyStates(folder), StateBackup(path)
    header = backup.header()
    for operator, written in header.forms.items():
        _check(states.form(operator), StateForm.read(written), operator)
    with StateLock(folder.absolute(), patience_s=0.0):
        finish_import(states.checkpoints)
        for part in {states.part_of(operator) for operator in header.forms}:
            if states.checkpoints.committed(part) < 0:
                raise BadInput(
                    f"{states.application} has not committed anything yet; run it once, then "
                    "import the states"
                )
        entries = backup.check()
        names = [name for operator in header.forms for name in _names_of(operator)]
        # the commit point: from now on the import is completed, by the next start if need be
        write_backup(folder / _PENDING, header, {name: backup.states(name) for name in names})
        finish_import(states.checkpoints)
    return Transferred(tuple(header.forms), entries)


def finish_import(checkpoints: Checkpoints) -> bool:
    """Complete a pending import; return whether there was one.

    The caller must hold the lock of the state.
    """
    backup = StateBackup(checkpoints.folder / _PENDING)
    if not backup.path.exists():
        return False
    states = KeyStates(checkpoints.folder)
    operators = backup.header().forms
    for part in {states.part_of(operator) for operator in operators}:
        files = CutFiles(checkpoints.cuts(part))
        with closing(files):
            cut = files.load(files.last(checkpoints.committed(part)))
            files.replace_states(
                cut,
                {
                    name: backup.states(name)
                    for operator in operators
                    if states.part_of(operator) == part
                    for name in _names_of(operator)
                },
            )
    backup.path.unlink()
    return True


def _check(now: StateForm, written: StateForm, operator: str) -> None:
    """Raise `BadInput` if an operator of the form *now* cannot read states *written* so."""
    found = now.conflicts(written)
    unknown = [name for name in written.types if name not in now.types]
    found += [f"there is no field {name}" for name in unknown]
    if found:
        raise BadInput(
            f"the states of operator {operator} have another form: {'; '.join(found)}; import "
            "them into a version of the application that has it"
        )

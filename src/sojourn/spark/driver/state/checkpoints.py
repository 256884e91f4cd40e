"""The folder that an application resumes from: checkpoints, logs, and the form of the app."""

import json
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sojourn.app.application import App
from sojourn.app.parts import Part, parts_of
from sojourn.app.reminder import reminders_of
from sojourn.errors import BadFile, BadInput
from sojourn.files.durable_file import write_durably
from sojourn.spark.driver.state.batch_files import (
    Positions,
    batch_numbers,
    drop_torn_batches,
    raise_offsets,
    raised,
)
from sojourn.spark.driver.state.state_form import (
    FORMAT,
    StateForm,
    differences,
    form_of,
    state_forms,
)
from sojourn.spark.host.batch.cut_store import CutFiles
from sojourn.spark.host.batch.query_runs import CheckpointId

_APPLICATION = "application.json"


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """The files that are kept from one start to the next."""

    folder: Path
    """The state folder, on a local disk of the driver's machine."""
    shared: Path | None = None
    """The folder for checkpoints that tasks write to."""
    written_by_tasks: frozenset[str] = frozenset()
    """Queries with checkpoints in *shared*: state stores of Spark, and memories of sinks."""

    @property
    def broker(self) -> Path:
        """The folder with the topics and records of our own broker."""
        return self.folder / "broker"

    @property
    def logs(self) -> Path:
        """The folder with the output of user code and Spark."""
        return self.folder / "logs"

    def checkpoint(self, query: str) -> Path:
        tasks = query in self.written_by_tasks
        folder = self.shared if tasks and self.shared is not None else self.folder
        return folder / "checkpoints" / query

    def cuts(self, part: str) -> Path:
        """Return the folder with the cuts of a part: its open records at the end of batches.

        It lies in the checkpoint, because cuts belong to the batches of that checkpoint only.
        """
        return self.checkpoint(part) / "part"

    def check(self, app: App, cluster: str) -> bool:
        """Return whether there is a state to resume.

        Raise `BadInput` if it belongs to an incompatible version of *app*, or to another
        cluster. Between two starts, functions may change and operators may be added. Parts must
        still read all topics that they read before, and Spark's own aggregations must not
        change. Fields of states may be added and removed, but must not change their types.
        """
        before = self.form()
        if before is not None:
            now = form_of(app, cluster)
            for difference in (*differences(before, now), *self._conflicts(before, app)):
                raise BadInput(
                    f"the state in {self.folder} does not match: {difference}; undo that "
                    "change, use another state folder (--state), or start without it (--fresh)"
                )
            for part in parts_of(app):
                self._check_open(app, part)
        return before is not None

    def check_queries(self, parts: Iterable[str]) -> None:
        """Raise `BadFile` if the checkpoint of a part was removed or replaced under its state.

        Its host would refuse the query; this check fails before anything is started.
        """
        for part in parts:
            kept = CheckpointId(self.cuts(part)).read()
            if kept and kept != (found := _checkpoint_id(self.checkpoint(part))):
                problem = f"has the id {found}" if found else "is gone"
                raise BadFile(
                    str(self.checkpoint(part)),
                    f"the checkpoint of {part} {problem}, and the state belongs to {kept}",
                    "restore it, or start without this state (--fresh)",
                )

    def form(self) -> dict[str, Any] | None:
        """Return the recorded form of the application; None if there is none.

        Raise `BadFile` if an incompatible version of Sojourn has written it.
        """
        path = self.folder / _APPLICATION
        try:
            form: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise _unreadable(path, error) from error
        if (found := form.get("format", 1)) != FORMAT:
            raise BadFile(
                str(self.folder),
                f"has a state of format {found}, and this version of Sojourn reads {FORMAT}",
                "use the version that wrote it, or start without this state (--fresh)",
            )
        return form

    def _conflicts(self, before: dict[str, Any], app: App) -> Iterator[str]:
        """Yield the changes of *app* that are incompatible with the states of its operators."""
        forms = state_forms(app)
        for name, written in before["states"].items():
            found: list[str] = []
            if name in forms:
                # even if no key has a state on disk: the log of a host may contain some
                found = forms[name].conflicts(StateForm.read(written))
            elif self._has_state(before, name):
                found = ["it declares none now" if name in app.operators else "it was removed"]
            if found:
                yield f"operator {name} has a state for each key: {'; '.join(found)}"

    def _has_state(self, before: dict[str, Any], operator: str) -> bool:
        """Return whether an operator has a state or a reminder for any key."""
        for part, form in before["parts"].items():
            batch = self.committed(part)
            if operator in form["operators"] and batch >= 0:
                files = CutFiles(self.cuts(part), readonly=True)
                with closing(files.state):
                    cut = files.load(files.last(batch))
                    return any(
                        next(files.state.states(name, cut.changed), None)
                        for name in (operator, reminders_of(operator))
                    )
        return False

    def _check_open(self, app: App, part: Part) -> None:
        """Raise `BadInput` if there are open records that no operator reads any more."""
        read = {(name, s.name) for name in part.operators for s in app.operators[name].reads}
        read |= {(name, reminders_of(name)) for name in part.operators}
        batch, files = self.committed(part.name), CutFiles(self.cuts(part.name))
        for record in files.all_open(files.load(files.last(batch))) if batch >= 0 else ():
            if (record.operator, record.record.stream) not in read:
                raise BadInput(
                    f"{record.record.stream} has records for operator {record.operator}, "
                    "which no longer reads it; start the previous version once more and stop "
                    "it with `sojourn stop`, or start without this state (--fresh)"
                )

    def keep(self, app: App, cluster: str) -> None:
        """Record the application that this state belongs to.

        Must be called after `begin` for every query, and before the first query is started: a
        start that fails earlier leaves no state.
        """
        form = form_of(app, cluster, self.form() or {})
        if self.written_by_tasks:
            form["shared"] = str(self.shared)
        write_durably(self.folder / _APPLICATION, json.dumps(form, indent=1).encode())

    def commits(self, query: str) -> int:
        """Return the number of committed batches of a query."""
        return max(batch_numbers(self.checkpoint(query) / "commits"), default=-1) + 1

    def committed(self, part: str) -> int:
        """Return the last batch of a part that is known to be committed; -1 if none is.

        If the part runs in a query of the user's own, with its checkpoint elsewhere, the files
        of the host have the answer.
        """
        if commits := self.commits(part):
            return commits - 1
        files = CutFiles(self.cuts(part), readonly=True)
        with closing(files.state):
            return files.committed()

    def committed_s(self, query: str, batch: int | None = None) -> float | None:
        """Return the commit time of a batch, by default the last, in seconds since 1970."""
        number = self.commits(query) - 1 if batch is None else batch
        path = self.checkpoint(query) / "commits" / str(number)
        return path.stat().st_mtime if path.exists() else None

    def begin(self, query: str, positions: Positions, *, anew: bool = False) -> None:
        """Record the first offsets of a query, unless there are some.

        If the application begins *anew*, replace them: a start that failed has left them.
        """
        path = self._first(query)
        if anew or not path.exists():
            write_durably(path, json.dumps(positions).encode())

    def remove_leftovers(self, parts: Iterable[str]) -> None:
        """Remove incomplete new versions of files, and the attempts of earlier runs.

        The caller must hold the lock of the state, so that no other process writes. The last
        attempt of each part stays: the next one is numbered from it, and it fences off tasks of
        earlier attempts.
        """
        folders = [self.folder, self.folder / "first"]
        folders += [self.checkpoint(query) / "memory" for query in self.written_by_tasks]
        for part in parts:
            attempts = self.cuts(part) / "attempts"
            folders.append(attempts)
            for number in batch_numbers(attempts)[:-1]:
                (attempts / str(number)).unlink(missing_ok=True)
        for folder in folders:
            for path in folder.glob("*.new"):
                path.unlink(missing_ok=True)

    def drop_torn_batches(self) -> dict[str, list[int]]:
        """Drop the last commits if Spark's files of them are torn; return them, by query."""
        folders = [self.folder, *filter(None, [self.shared])]
        found = {
            path.name: drop_torn_batches(path)
            for folder in folders
            for path in sorted((folder / "checkpoints").glob("*"))
        }
        return {query: batches for query, batches in found.items() if batches}

    def positions(
        self, query: str, new: Positions, *, before: int = 0
    ) -> dict[str, dict[int, int]]:
        """Return the committed offsets of a query, by topic and partition.

        With *before*, return those of as many commits earlier. Before the first commit they are
        the first offsets of the first start: records that a killed start had taken are
        replayed. Partitions that were added since begin at *new*.
        """
        path = self._first(query)
        try:
            known = _parsed(path.read_text(encoding="utf-8")) if path.exists() else {}
        except (OSError, ValueError) as error:
            raise _unreadable(path, error) from error
        checkpoint = self.checkpoint(query)
        committed = batch_numbers(checkpoint / "commits")
        if len(committed) > before:
            offsets = checkpoint / "offsets" / str(committed[-1 - before])
            # the lines: a version, the metadata of the batch, and the offsets of each source
            for line in offsets.read_text(encoding="utf-8").splitlines()[2:]:
                known |= _parsed(line)
        return {topic: dict(new[topic]) | known.get(topic, {}) for topic in new}

    def skip_to(self, query: str, least: Positions) -> None:
        """Raise the offsets at which a query begins or resumes to *least* or more."""
        path = self._first(query)
        if path.exists():
            write_durably(path, raised(path.read_text(encoding="utf-8"), least).encode())
        raise_offsets(self.checkpoint(query), least)

    def _first(self, query: str) -> Path:
        return self.folder / "first" / f"{query}.json"


def _unreadable(path: Path, error: Exception) -> BadFile:
    way_out = "restore it, or start without this state (--fresh)"
    return BadFile(str(path), f"cannot be read: {error}", way_out)


def _checkpoint_id(checkpoint: Path) -> str:
    """Return the id that Spark gave a checkpoint; empty if it has none."""
    try:
        told = json.loads((checkpoint / "metadata").read_text(encoding="utf-8"))
        return str(told["id"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _parsed(text: str) -> dict[str, dict[int, int]]:
    return {
        topic: {int(partition): offset for partition, offset in partitions.items()}
        for topic, partitions in json.loads(text).items()
    }

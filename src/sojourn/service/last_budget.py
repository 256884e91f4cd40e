"""The error budget of the last run, which the next one resumes."""

import json
from collections.abc import Callable
from pathlib import Path
from time import time
from typing import Any

import msgspec

from sojourn.decide.objective import Objective
from sojourn.errors import EngineError
from sojourn.files.durable_file import write_durably
from sojourn.knowledge import ErrorBudget

# Of a longer time without the application only this much counts.
_LONGEST_S = 86_400.0


class _Saved(msgspec.Struct, frozen=True):
    objective: dict[str, Any]
    level: float
    judged: int
    missed: int
    causes: dict[str, int]
    born: int = 0
    in_time: int = 0
    at_s: float = 0.0
    """When a slice was judged last, by the wall clock."""
    ended: bool = True
    """Whether the run was ended in order."""


class LastBudget:
    """The error budget that was saved last in the state folder *state*.

    *failure* is why the current budget could not be saved; "" if it is saved. *note* is how
    many slices were missed between the last run and this one.
    """

    def __init__(self, state: Path, *, clock: Callable[[], float] = time) -> None:
        self._file, self._clock = state / "error_budget.json", clock
        self._saved: _Saved | None = None
        self.failure = self.note = ""

    def resumed(self, objective: Objective) -> ErrorBudget:
        """Return the budget to begin with: of another objective only the level is resumed.

        If the last run was not ended in order, the slices since then were missed.
        """
        begun = ErrorBudget(objective=objective)
        try:
            saved = msgspec.json.decode(self._file.read_bytes(), type=_Saved)
        except (OSError, msgspec.DecodeError):
            return begun  # not worth an error: the level settles again
        same = saved.objective == msgspec.to_builtins(objective)
        budget = ErrorBudget(
            objective=objective,
            level=begun.clamped(saved.level),
            judged=saved.judged if same else 0,
            missed=saved.missed if same else 0,
            causes=saved.causes if same else {},
            born=saved.born if same else 0,
            in_time=saved.in_time if same else 0,
        )
        down_s = min(self._clock() - saved.at_s, _LONGEST_S)
        slices = int(down_s / objective.slice_s)
        if not same or saved.ended or slices <= 0:
            return budget
        self.note = (
            f"the application was not running for {slices} slices of {objective.slice_s:g} s, "
            "which count as missed"
        )
        return budget.down(slices)

    def save(self, budget: ErrorBudget | None) -> None:
        """Save *budget* durably, if a slice was judged; set `failure` if that fails."""
        if budget is None:
            return
        at_s = self._clock()
        if self._saved is not None and self._saved.judged == budget.judged:
            at_s = self._saved.at_s
        saved = _Saved(
            msgspec.to_builtins(budget.objective),
            budget.level,
            budget.judged,
            budget.missed,
            dict(budget.causes),
            budget.born,
            budget.in_time,
            at_s,
            ended=False,
        )
        self._write(saved)

    def end(self) -> None:
        """Save that the run was ended in order: the time until the next one does not count."""
        if self._saved is not None:
            self._write(msgspec.structs.replace(self._saved, ended=True))

    def _write(self, saved: _Saved) -> None:
        if saved != self._saved:
            try:
                write_durably(self._file, json.dumps(msgspec.to_builtins(saved)).encode())
            except EngineError as error:
                self.failure = str(error)
                return
            self._saved = saved
        self.failure = ""

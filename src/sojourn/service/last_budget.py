"""The error budget of the last run, which the next one resumes."""

import json
from pathlib import Path
from typing import Any

import msgspec

from sojourn.decide.objective import Objective
from sojourn.errors import EngineError
from sojourn.files.durable_file import write_durably
from sojourn.knowledge import ErrorBudget


class _Saved(msgspec.Struct, frozen=True):
    objective: dict[str, Any]
    level: float
    judged: int
    missed: int
    causes: dict[str, int]
    born: int = 0
    in_time: int = 0


class LastBudget:
    """The error budget that was saved last in the state folder *state*.

    *failure* is why the current budget could not be saved; "" if it is saved.
    """

    def __init__(self, state: Path) -> None:
        self._file = state / "error_budget.json"
        self._saved: _Saved | None = None
        self.failure = ""

    def resumed(self, objective: Objective) -> ErrorBudget:
        """Return the budget to begin with: of another objective only the level is resumed."""
        begun = ErrorBudget(objective=objective)
        try:
            saved = msgspec.json.decode(self._file.read_bytes(), type=_Saved)
        except (OSError, msgspec.DecodeError):
            return begun  # not worth an error: the level settles again
        same = saved.objective == msgspec.to_builtins(objective)
        return ErrorBudget(
            objective=objective,
            level=begun.clamped(saved.level),
            judged=saved.judged if same else 0,
            missed=saved.missed if same else 0,
            causes=saved.causes if same else {},
            born=saved.born if same else 0,
            in_time=saved.in_time if same else 0,
        )

    def save(self, budget: ErrorBudget | None) -> None:
        """Save *budget* durably, if a slice was judged; set `failure` if that fails."""
        if budget is None:
            return
        saved = _Saved(
            msgspec.to_builtins(budget.objective),
            budget.level,
            budget.judged,
            budget.missed,
            dict(budget.causes),
            budget.born,
            budget.in_time,
        )
        if saved != self._saved:
            try:
                write_durably(self._file, json.dumps(msgspec.to_builtins(saved)).encode())
            except EngineError as error:
                self.failure = str(error)
                return
            self._saved = saved
        self.failure = ""

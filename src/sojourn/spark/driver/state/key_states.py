"""The states of keys on disk, readable while an application runs and after it has ended."""

import json
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from decimal import Decimal
from heapq import heappush, heapreplace
from pathlib import Path
from typing import Any

from sojourn.app.reminder import reminders_of
from sojourn.app.writing import key_of_json
from sojourn.errors import BadFile, BadInput, BadRecord, EngineError
from sojourn.spark.driver.state.checkpoints import Checkpoints
from sojourn.spark.driver.state.state_form import StateForm, json_values
from sojourn.spark.host.batch.cut import Cut
from sojourn.spark.host.batch.cut_store import CutFiles
from sojourn.spark.host.state.expiry import unstamped
from sojourn.spark.host.state.keyed_state import KeyedState, StateMoment
from sojourn.spark.processor.state_codec import StateCodec
from sojourn.text import shown


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyState:
    key: str
    """The values of the key's columns, a JSON text."""
    values: dict[str, Any]
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StateSummary:
    """The number and size of an operator's states."""

    form: StateForm
    keys: int
    bytes: int
    reminders: int
    """Pending reminders."""
    largest: tuple[tuple[str, int], ...]
    """The keys with the largest states, and their bytes."""
    batch: int
    """The last committed batch, whose states these are; -1 before the first commit."""
    committed_s: float | None
    """The time of that commit, in seconds since 1970."""


class KeyStates:
    """The states in the folder of an application, as of Spark's last commit.

    Raise `BadInput` if the folder has none.
    """

    def __init__(self, folder: Path) -> None:
        self.checkpoints = Checkpoints(folder)
        recorded = self.checkpoints.form()
        if recorded is None:
            raise BadInput(
                f"{folder} is not the state folder of an application that has run; "
                "choose it with --state"
            )
        self.application = str(recorded["application"])
        states = recorded["states"]
        self.forms = {name: StateForm.read(written) for name, written in states.items()}
        self.part_of: Mapping[str, str] = {
            operator: part
            for part, form in recorded["parts"].items()
            for operator in form["operators"]
        }

    def form(self, operator: str) -> StateForm:
        """Return the form of an operator's state. Raise `BadInput` if it keeps none."""
        if operator not in self.forms:
            known = ", ".join(self.forms) or "none"
            raise BadInput(
                f"{self.application} has no operator {shown(operator)} with a state; "
                f"operators with one: {known}"
            )
        return self.forms[operator]

    def summary(self, operator: str, *, largest: int = 10) -> StateSummary:
        """Return number and size of an operator's states, and the *largest* of them."""
        form, keys, size = self.form(operator), 0, 0
        most: list[tuple[int, str]] = []  # a heap, so the smallest of the largest is first
        with self.moment(self.part_of[operator]) as (batch, moment):
            for key, state in moment.states(operator):
                here = _size(key, state)
                keys, size = keys + 1, size + here
                if len(most) < largest:
                    heappush(most, (here, key))
                elif largest and here > most[0][0]:
                    heapreplace(most, (here, key))
            reminders = sum(1 for _ in moment.states(reminders_of(operator)))
        return StateSummary(
            form=form,
            keys=keys,
            bytes=size,
            reminders=reminders,
            largest=tuple((key, here) for here, key in sorted(most, reverse=True)),
            batch=batch,
            committed_s=self.checkpoints.committed_s(self.part_of[operator], batch),
        )

    def every(self, operator: str) -> Iterator[KeyState]:
        """Yield the states of all keys, a consistent snapshot."""
        codec = StateCodec(f"operators.{operator}.state", self.form(operator).fields)
        with self.moment(self.part_of[operator]) as (_, moment):
            for key, state in moment.states(operator):
                values = codec.decode(unstamped(state))
                yield KeyState(key=key, values=values, bytes=_size(key, state))

    def of(self, operator: str, key: str) -> KeyState:
        """Return the state of a key: the value of its column, or a JSON list of several.

        Raise `BadInput` if the key has no state.
        """
        form = self.form(operator)
        texts = _key_texts(form, key)
        with self._last(self.part_of[operator]) as (_, files, cut):
            state = KeyedState(files.state)
            state.restore(cut.changed)
            for text in texts:
                if found := state.of(operator, text):
                    codec = StateCodec(f"operators.{operator}.state", form.fields)
                    values = codec.decode(unstamped(found))
                    return KeyState(key=text, values=values, bytes=_size(text, found))
        defaults = json.dumps(json_values(form.fields.schema, form.fields.defaults))
        raise BadInput(
            f"operator {operator} has no state of key {shown(key)}, so it has the defaults, "
            f"{defaults}; a key is {_example(form)}"
        )

    @property
    def parts(self) -> list[str]:
        return sorted({self.part_of[operator] for operator in self.forms})

    @contextmanager
    def moment(self, part: str) -> Iterator[tuple[int, StateMoment]]:
        """Yield the last committed batch of a part, and a snapshot of its states."""
        while True:
            with (
                self._last(part) as (batch, files, cut),
                files.state.moment(cut.changed) as moment,
            ):
                if moment.merged <= batch:
                    yield batch, moment
                    return
                # another batch was committed and merged meanwhile: the snapshot contains it

    @contextmanager
    def _last(self, part: str) -> Iterator[tuple[int, CutFiles, Cut]]:
        """Yield the last committed batch, the files of the part, and the cut of the batch."""
        files = CutFiles(self.checkpoints.cuts(part), readonly=True)
        with closing(files.state):
            batch, cut = self._last_cut(part, files)
            yield batch, files, cut

    def _last_cut(self, part: str, files: CutFiles) -> tuple[int, Cut]:
        while True:
            batch = self.checkpoints.committed(part)
            try:
                return batch, files.load(files.last(batch))
            except (BadFile, EngineError):
                if batch == self.checkpoints.committed(part):
                    raise
                # retry: the next batch was committed meanwhile, and the cut of this one removed


def _key_texts(form: StateForm, key: str) -> list[str]:
    """Return the stored keys that *key* may mean: a text, a JSON value, or a list of values."""
    found: list[list[Any]] = [[key]] if len(form.key) == 1 else []
    with suppress(ValueError):
        value = json.loads(key, parse_float=Decimal)
        if len(form.key) == 1:
            found.append([value])
        if isinstance(value, list) and len(value) == len(form.key):
            found.append(value)
    parts, texts = [key_of_json(field) for field in form.key], []
    for values in found:
        with suppress(BadRecord):
            kept = [part(value) for part, value in zip(parts, values, strict=True)]
            texts.append(json.dumps(kept))
    if not texts:
        raise BadInput(f"{shown(key)} is not a key; write {_example(form)}")
    return texts


def _size(key: str, state: bytes) -> int:
    return len(key.encode(errors="surrogatepass")) + len(state)


def _example(form: StateForm) -> str:
    columns = ", ".join(map(str, form.key))
    if len(form.key) == 1:
        return f"the value of {columns}"
    return f"a JSON list of the values of {columns}"

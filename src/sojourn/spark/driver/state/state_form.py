"""The form of keyed states, as recorded in the state folder."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from sojourn.app.application import App
from sojourn.app.datatype import Field
from sojourn.app.operator import PythonOperator
from sojourn.app.reading import reader
from sojourn.app.schema import Schema, parse_fields
from sojourn.app.state import StateFields, key_fields
from sojourn.app.writing import writer

__all__ = ["StateForm", "json_values", "state_forms"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StateForm:
    """The columns of the key and the fields of a state."""

    key: tuple[Field, ...]
    fields: StateFields
    removed: Mapping[str, str]
    """Types of fields that were removed; states not written since still contain them."""

    @classmethod
    def of(cls, operator: PythonOperator) -> Self | None:
        """Return the form of an operator's state; None if it has no state."""
        read = operator.reads[0]
        if operator.state is None or read.schema is None:
            return None
        return cls(key=key_fields(read), fields=operator.state, removed={})

    @classmethod
    def read(cls, written: Mapping[str, Any]) -> Self:
        """Parse the JSON of `written`."""
        schema = Schema(parse_fields(written["fields"], "fields"))
        defaults = {
            field.name: None if given is None else reader(field.type)(given)
            for field in schema.fields
            for given in (written["defaults"][field.name],)
        }
        return cls(
            key=parse_fields(written["key"], "key"),
            fields=StateFields(schema, defaults),
            removed=written["removed"],
        )

    def written(self) -> dict[str, Any]:
        """Return the form as JSON: types in DDL, and the defaults of fields."""
        return {
            "key": ", ".join(map(str, self.key)),
            "fields": str(self.fields),
            "defaults": json_values(self.fields.schema, self.fields.defaults),
            "removed": dict(self.removed),
        }

    @property
    def types(self) -> dict[str, str]:
        """The types of all fields that states may contain."""
        now = {field.name: str(field.type) for field in self.fields.schema.fields}
        return {**self.removed, **now}

    def after(self, before: "StateForm") -> "StateForm":
        """Return the form with the fields of *before* that it no longer has as removed."""
        now = self.fields.schema.names
        removed = {name: kind for name, kind in before.types.items() if name not in now}
        return replace(self, removed=removed)

    def conflicts(self, before: "StateForm") -> list[str]:
        """Return the reasons why states of the form *before* cannot be read."""
        was, now = (", ".join(str(f.type) for f in form.key) for form in (before, self))
        found = [] if was == now else [f"its key was {was}, now it is {now}"]
        types = self.types
        return found + [
            f"field {name} was {kind}, now it is {types[name]} (give it another name)"
            for name, kind in before.types.items()
            if types.get(name, kind) != kind
        ]


def state_forms(app: App) -> dict[str, StateForm]:
    """Return the forms of an application's states, by operator."""
    operators = (o for o in app.operators.values() if isinstance(o, PythonOperator))
    return {o.name: form for o in operators if (form := StateForm.of(o)) is not None}


def json_values(schema: Schema, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of fields as JSON.

    >>> from datetime import date
    >>> from sojourn.app.schema import parse_schema
    >>> json_values(parse_schema("n int, day date"), {"n": 3, "day": date(2026, 1, 31)})
    {'n': 3, 'day': '2026-01-31'}
    """
    found = {}
    for field in schema.fields:
        value, write = values[field.name], writer(field.type, odd=True)
        found[field.name] = value if value is None or write is None else write(value)
    return found

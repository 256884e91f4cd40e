"""The form of an application and of its keyed states, as recorded in the state folder."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from sojourn.app.application import App
from sojourn.app.datatype import Field
from sojourn.app.operator import NativeOperator, PythonOperator
from sojourn.app.parts import parts_of
from sojourn.app.reading import reader
from sojourn.app.schema import Schema, parse_fields
from sojourn.app.state import StateFields, key_fields
from sojourn.app.writing import writer

FORMAT = 2
"""The format of all files in the folder: cuts, logs, stores. Raise it with any change."""
_NOTHING: Mapping[str, Any] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class StateForm:
    """The columns of the key and the fields of a state."""

    key: tuple[Field, ...]
    fields: StateFields
    removed: Mapping[str, str]
    """Types of fields that were removed; states not written since still contain them."""

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
    return {
        name: StateForm(key=key_fields(operator.reads[0]), fields=operator.state, removed={})
        for name, operator in app.operators.items()
        if isinstance(operator, PythonOperator)
        and operator.state is not None
        and operator.reads[0].schema is not None
    }


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


def form_of(app: App, cluster: str, before: Mapping[str, Any] = _NOTHING) -> dict[str, Any]:
    """Return the form of an application, with removed fields of states from *before*."""
    parts = parts_of(app)
    states = before.get("states", {})
    within = {name for part in parts for name in part.projections}
    return {
        "format": FORMAT,
        "application": app.name,
        "cluster": cluster,
        "parts": {
            part.name: {
                "reads": sorted(map(app.topic, part.reads)),
                "operators": sorted(part.operators),
                **({"projections": sorted(part.projections)} if part.projections else {}),
            }
            for part in parts
        },
        "operators": {
            name: {
                "reads": sorted(app.topic(stream.name) for stream in operator.reads),
                **(
                    {"groups": operator.groups, "columns": dict(operator.columns)}
                    if operator.kind == "aggregate"
                    else {}
                ),
            }
            for name, operator in app.operators.items()
            if isinstance(operator, NativeOperator) and name not in within
        },
        "states": {
            name: (
                form.after(StateForm.read(states[name])) if name in states else form
            ).written()
            for name, form in state_forms(app).items()
        },
    }


def differences(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Return the changes of an application, apart from its states, that do not fit *before*."""
    now = json.loads(json.dumps(now))
    found = [
        f"it belongs to {what} {before.get(key)}, not {now[key]}"
        for key, what in (("application", "the application"), ("cluster", "the Kafka cluster"))
        if before.get(key) != now[key]
    ]
    for name, form in now["operators"].items():
        was = before["operators"].get(name)
        if was is not None and was != form:
            found.append(f"operator {name} was {json.dumps(was)}, now it is {json.dumps(form)}")
    found += [
        f"projection {name} was a query of its own, and now runs in that of {part} "
        "(app.project(…, durable=True) keeps its query)"
        for part, form in now["parts"].items()
        for name in form.get("projections", ())
        if name in before["operators"]
    ]
    for name, was in before["parts"].items():
        is_now = now["parts"].get(name, {"reads": [], "operators": []})
        gone = [topic for topic in was["reads"] if topic not in is_now["reads"]]
        found += [f"{name} no longer reads topic {topic}" for topic in gone]
        found += [
            f"operator {operator} is no longer in one part with {name}"
            for operator in was["operators"]
            if any(operator in p["operators"] for n, p in now["parts"].items() if n != name)
        ]
    return found

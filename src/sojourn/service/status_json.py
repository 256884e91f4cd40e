"""The JSON of a status, for the socket and `top --json`."""

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any, TypeVar

from sojourn.decide.target import Target
from sojourn.engine import Health
from sojourn.service.status import DecisionStatus, Measured, OperatorStatus, Status

__all__ = ["from_json", "to_json"]

_Record = TypeVar("_Record")


def to_json(status: Status) -> dict[str, Any]:
    """Return the JSON of a status."""
    health = status.health
    told = {
        "name": status.name,
        "policy": status.policy,
        "target": {"statistic": status.target.statistic, "seconds": status.target.seconds},
        "max_processors": status.max_processors,
        "deciding": status.deciding,
        "why": status.why,
        "warning": status.warning,
        "every_s": status.every_s,
        "at_s": status.at_s,
        "allocation": dict(status.allocation),
        "measured": asdict(status.measured),
        "operators": {
            name: asdict(operator) | {"sends_to": list(operator.sends_to)}
            for name, operator in status.operators.items()
        },
        "now": status.now,
        "usable": status.usable,
        "changes": status.changes,
        "decisions": [asdict(decision) for decision in status.decisions],
        "health": {
            "restarts": dict(health.restarts),
            "replayed": health.replayed,
            "retried": health.retried,
            "dead_letters": health.dead_letters,
            "failure": health.failure,
            "no_broker_s": health.no_broker_s,
            "notices": list(health.notices),
        },
        "inner_topics": {"records": health.held_records, "bytes": health.held_bytes},
    }
    return told if status.history is None else told | {"history": status.history}


def from_json(told: Mapping[str, Any]) -> Status:
    """Return the status in its JSON.

    That of an earlier version may have fewer fields, that of a later version more.
    """
    held = told.get("inner_topics") or {}
    health = {
        **told["health"],
        "notices": tuple(told["health"].get("notices", ())),
        "held_records": held.get("records"),
        "held_bytes": held.get("bytes"),
    }
    return _record(
        Status,
        {
            **told,
            "target": Target(told["target"]["statistic"], told["target"]["seconds"]),
            "measured": _record(Measured, told["measured"]),
            "operators": {
                name: _record(OperatorStatus, operator)
                for name, operator in told["operators"].items()
            },
            "decisions": tuple(_record(DecisionStatus, each) for each in told["decisions"]),
            "health": _record(Health, health),
        },
    )


def _record(kind: type[_Record], told: Mapping[str, Any]) -> _Record:
    """Return a record from the fields that are there."""
    names = [each.name for each in fields(kind)]  # type: ignore[arg-type]
    return kind(**{name: told[name] for name in names if name in told})

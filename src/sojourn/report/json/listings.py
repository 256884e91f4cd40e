"""The JSON of policies, states of keys and dead letters."""

import base64
import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from sojourn.act.options import kind_text, options, value_text
from sojourn.act.policy import policy
from sojourn.decide.target import Target
from sojourn.report.json.output import picked

if TYPE_CHECKING:  # Kafka's client and the store are optional
    from sojourn.spark.driver.kafka.dead_letters import DeadLetter
    from sojourn.spark.driver.state.key_states import KeyState, StateSummary
    from sojourn.spark.driver.state.state_form import StateForm

# The options of a policy do not depend on its target.
_ANY = Target("mean", 1.0)


def policy_json(name: str) -> dict[str, Any]:
    made = policy(name, target=_ANY)
    return {
        "name": name,
        "meaning": next(iter((type(made).__doc__ or "").strip().splitlines()), ""),
        "options": [
            {
                "name": option.name,
                "value": kind_text(option),
                "default": value_text(option, option.default),
                "meaning": option.meaning,
            }
            for option in options(made).values()
        ],
    }


def summary_json(summary: "StateSummary") -> dict[str, Any]:
    at_s = summary.committed_s
    return {
        "key": ", ".join(map(str, summary.form.key)),
        "fields": str(summary.form.fields),
        "keys": summary.keys,
        "bytes": summary.bytes,
        "reminders": summary.reminders,
        "batch": summary.batch if summary.batch >= 0 else None,
        "committed": at_s and utc_text(at_s),
        "largest": [{"key": json.loads(key), "bytes": size} for key, size in summary.largest],
    }


def key_json(form: "StateForm", found: "KeyState") -> dict[str, Any]:
    from sojourn.spark.driver.state.state_form import json_values  # noqa: PLC0415 - optional

    return {
        "key": json.loads(found.key),
        "bytes": found.bytes,
        "state": json_values(form.fields.schema, found.values),
    }


def letter_json(letter: "DeadLetter") -> dict[str, Any]:
    return {
        "position": letter.position,
        "at": utc_text(letter.at_s),
        **picked(letter, "operator", "stream", "tries", "came_from", "record"),
        **picked(letter, "error", "traceback"),
        "key": _content(letter.key),
        "payload": _content(letter.value),
        "cut": letter.cut,
        "headers": {
            name: _content(value)
            for name, value in letter.headers
            if name not in ("sojourn-error", "sojourn-traceback")
        },
    }


def utc_text(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).isoformat(timespec="seconds")


def _content(value: bytes | None) -> str | None:
    """Return UTF-8 as text, and other bytes in base64."""
    if value is None:
        return None
    try:
        return value.decode()
    except UnicodeDecodeError:
        return f"base64:{base64.b64encode(value).decode()}"

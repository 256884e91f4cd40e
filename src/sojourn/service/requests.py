"""The requests that a running application answers on its control socket."""

from collections.abc import Callable, Mapping
from typing import Any

from sojourn.decide.target import Target, check_processors
from sojourn.engine import kafka
from sojourn.errors import BadAllocation, BadInput, BadTarget
from sojourn.service.status import Status, to_json
from sojourn.service.supervisor import Supervisor
from sojourn.text import shown

REQUESTS = ("scale", "pause", "resume", "set", "status", "kafka")
"""The names of requests, but for "stop", which is also answered during the start."""

_LONGEST_NAME = 64


def answer(
    supervisor: Supervisor, status: Callable[[], Status], request: Mapping[str, Any]
) -> Mapping[str, object]:
    """Return the answer to a request. Raise `BadInput` if it is not valid."""
    by = _who(request.get("by"))
    match request.get("ask"):
        case "scale":
            return {"said": supervisor.scale(_allocation(request.get("allocation")), by)}
        case "pause":
            return {"said": supervisor.pause(by)}
        case "resume":
            return {"said": supervisor.resume(by)}
        case "set":
            target, most = _target(request.get("target")), request.get("max_processors")
            if most is not None:
                check_processors(most)
            placement = _name(request.get("placement"))
            return {
                "said": supervisor.set_goal(
                    target,
                    most,
                    by,
                    slice_s=_number(request.get("slice_s")),
                    kept=_number(request.get("kept")),
                    placement=placement,
                )
            }
        case "status":
            return to_json(status())
        case "kafka":
            return {"clients": dict(kafka(supervisor.engine).clients)}
        case other:
            raise BadInput(f"{shown(other)} is not a request; use {', '.join(REQUESTS)}")


def _who(given: object) -> str:
    """Return the name of the user for the history; it is not authenticated."""
    return given[:_LONGEST_NAME] if isinstance(given, str) and given.isprintable() else ""


def _allocation(given: object) -> dict[str, int]:
    if not isinstance(given, dict):
        raise BadAllocation(f"{shown(given)} is not an allocation; write match=12")
    return given  # checked later against the topology


def _name(given: object) -> str | None:
    if given is not None and not isinstance(given, str):
        raise BadInput(f"{shown(given)} is not the name of a placer; write round_robin")
    return given


def _number(given: object) -> float | None:
    if given is not None and (isinstance(given, bool) or not isinstance(given, int | float)):
        raise BadInput(f"{shown(given)} is not a number; write 60, or 0.99")
    return given


def _target(given: object) -> Target | None:
    if given is None:
        return None
    if not isinstance(given, dict) or given.keys() != {"statistic", "seconds"}:
        raise BadTarget(f"{shown(given)} is not a target; give a statistic and seconds")
    return Target(given["statistic"], given["seconds"])

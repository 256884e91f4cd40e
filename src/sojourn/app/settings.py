"""The settings of an operator, and their checks."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any, Literal, NoReturn, TypedDict

from sojourn.app.checks import check_flag
from sojourn.app.operator import Hints, OnError
from sojourn.app.state import DeclaredState, state_fields
from sojourn.app.stream import Stream
from sojourn.errors import BadApplication, BadTopology
from sojourn.text import shown
from sojourn.topology import check

_LONGEST_TTL_S = 100 * 365 * 86400.0


class Settings(TypedDict, total=False):
    """Bounds, and hints for plans and simulations."""

    min_processors: int
    max_processors: int | None
    service_s: float | None
    service_scv: float
    sends: float | Mapping[str, float]
    """Mean records sent per record read; by stream if there are several."""


class PythonSettings(Settings, total=False):
    """Further settings of a Python operator."""

    on_error: Literal["stop", "dead_letter"] | OnError
    time_limit_s: float
    records_per_transfer: int | None
    record_id: bool
    nulls: bool
    state: DeclaredState | None
    ttl_s: float | None


def settings_of(
    place: str, given: Mapping[str, Any], emits: tuple[Stream, ...], *, native: bool
) -> dict[str, Any]:
    """Return the settings *given* as fields of an operator.

    Raise a `BadApplication` that names the operator and the invalid setting.
    """
    _check_known(place, given, (Settings if native else PythonSettings).__annotations__)
    given = {"min_processors": 1, "max_processors": None, **given}
    try:
        _check_bounds(place, given["min_processors"], given["max_processors"])
        _check_limits(place, given)
        sends = given.pop("sends", {})
        if not isinstance(sends, Mapping):
            if len(emits) != 1:
                _refuse_number(place, sends, emits)
            sends = {emits[0].name: sends}
        hints = Hints(
            service_s=given.pop("service_s", None),
            service_scv=given.pop("service_scv", 1.0),
            sends=dict(sends),
        )
        check_hints(place, hints, emits)
    except BadTopology as error:
        raise BadApplication(error.place, error.problem, error.way_out) from None
    return given | {"hints": hints}


def check_hints(place: str, hints: Hints, emits: Iterable[Stream]) -> None:
    """Raise `BadApplication` or `BadTopology` if a hint is invalid."""
    if hints.service_s is not None:
        check.number(f"{place}.service_s", hints.service_s)
    check.number(f"{place}.service_scv", hints.service_scv)
    names = [stream.name for stream in emits]
    for name, mean in hints.sends.items():
        if name not in names:
            raise BadApplication(
                f"{place}.sends",
                f"it does not write a stream {shown(name)}",
                f"write {' or '.join(names)}" if names else "leave it out: it emits nothing",
            )
        check.number(f"{place}.sends.{name}", mean)


def _refuse_number(place: str, sends: object, emits: tuple[Stream, ...]) -> NoReturn:
    example = ", ".join(f'"{stream.name}": 1' for stream in emits)
    raise BadApplication(
        f"{place}.sends",
        f"{shown(sends)} is one number for {len(emits)} streams",
        f"write {{{example}}}" if emits else "leave it out: it emits nothing",
    )


def _check_known(place: str, given: Iterable[str], known: Iterable[str]) -> None:
    for name in given:
        if name not in known:
            close = get_close_matches(name, list(known), n=1) or known
            way_out = f"write {' or '.join(close)}"
            raise BadApplication(f"{place}.{name}", "there is no such setting", way_out)


def _check_bounds(place: str, least: object, most: Any) -> None:  # noqa: ANN401 - it is checked
    check.count(f"{place}.min_processors", least)
    if most is None:
        return
    check.count(f"{place}.max_processors", most)
    if most < least:
        problem = f"{most} is below min_processors, {least}"
        way_out = "raise max_processors or lower min_processors"
        raise BadApplication(f"{place}.max_processors", problem, way_out)


def _check_limits(place: str, given: dict[str, Any]) -> None:
    if "time_limit_s" in given:
        check.number(f"{place}.time_limit_s", given["time_limit_s"])
        if given["time_limit_s"] == 0:
            way_out = "write the seconds that one record may take"
            raise BadApplication(f"{place}.time_limit_s", "the limit is 0", way_out)
    if given.get("records_per_transfer") is not None:
        check.count(f"{place}.records_per_transfer", given["records_per_transfer"])
    for name in ("record_id", "nulls"):
        check_flag(f"{place}.{name}", given.get(name, False), "write True or leave it out")
    if given.get("state") is not None:
        given["state"] = state_fields(f"{place}.state", given["state"])
    if given.get("ttl_s") is not None:
        _check_ttl(f"{place}.ttl_s", given)
    if "on_error" in given:
        given["on_error"] = _on_error(f"{place}.on_error", given["on_error"])


def _check_ttl(place: str, given: Mapping[str, Any]) -> None:
    if given.get("state") is None:
        problem = "it keeps no state that could expire"
        raise BadApplication(place, problem, "declare a state, or leave ttl_s out")
    check.number(place, given["ttl_s"])
    if not 0.001 <= given["ttl_s"] <= _LONGEST_TTL_S:
        problem = f"{given['ttl_s']} s is not between 0.001 s and {_LONGEST_TTL_S:.0f} s"
        way_out = "write the seconds after which a state that has not changed is removed"
        raise BadApplication(place, problem, way_out)


def _on_error(place: str, given: Any) -> OnError:  # noqa: ANN401 - it is checked
    policy = given if isinstance(given, OnError) else OnError(then=given)
    if policy.then not in ("stop", "dead_letter"):
        way_out = 'write "stop", "dead_letter" or sj.OnError(retries=3, then="dead_letter")'
        raise BadApplication(place, f"{shown(policy.then)} is not known", way_out)
    if policy.retries != 0:
        check.count(f"{place}.retries", policy.retries)
    return policy

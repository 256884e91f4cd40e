"""Writes topology files. A topology that is read back is equal, and gives the same plans."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any

from sojourn.errors import BadFile
from sojourn.topology import Arrival, Operator, Topology
from sojourn.topology.file.reader import FORMAT

__all__ = ["topology_text", "write_topology"]

# Other names are quoted: they might be numbers, or have a meaning in YAML.
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_./ -]*[A-Za-z0-9_]|[A-Za-z_]")
_WORDS = ("null", "true", "false")


def write_topology(topology: Topology, path: Path, *, remarks: Iterable[str] = ()) -> None:
    """Write *topology* to a file: JSON if its name ends in .json, otherwise YAML.

    *remarks* are comments at the top of YAML. Raise `BadFile` if it cannot be written.
    """
    as_json = path.suffix.lower() == ".json"
    text = _json(topology) if as_json else topology_text(topology, remarks=remarks)
    try:
        path.write_text(text, encoding="utf-8")
    except (OSError, ValueError) as error:
        problem = getattr(error, "strerror", None) or str(error)
        raise BadFile(str(path), f"cannot be written: {problem}", "check the path") from error


def topology_text(topology: Topology, *, remarks: Iterable[str] = ()) -> str:
    """Return *topology* in YAML, with one line for each operator.

    >>> operator = Operator(name="count", service_s=0.01)
    >>> arrival = Arrival(name="lines", per_s=40, into="count")
    >>> print(topology_text(Topology(name="wc", arrivals=(arrival,), operators=(operator,))))
    format: 1
    name: wc
    arrivals:
      lines: {per_s: 40, into: count}
    operators:
      count: {service_s: 0.01}
    <BLANKLINE>
    """
    lines = [f"# {remark}" for remark in remarks]
    for section, value in _document(topology).items():
        if isinstance(value, dict):
            lines.append(f"{section}:")
            lines += [f"  {_flow(name)}: {_flow(record)}" for name, record in value.items()]
        else:
            lines.append(f"{section}: {_flow(value)}")
    return "\n".join(lines) + "\n"


def _json(topology: Topology) -> str:
    return json.dumps(_document(topology), indent=2, ensure_ascii=False) + "\n"


def _document(topology: Topology) -> dict[str, Any]:
    """Return the content of the file, without default values."""
    document: dict[str, Any] = {
        "format": FORMAT,
        "name": topology.name,
        "arrivals": {arrival.name: _record(arrival) for arrival in topology.arrivals},
        "operators": {operator.name: _record(operator) for operator in topology.operators},
    }
    if topology.cores is not None:
        document["cores"] = _number(topology.cores)
    return document


def _record(record: Arrival | Operator) -> dict[str, Any]:
    given = {
        field.name: (getattr(record, field.name), _default(field)) for field in fields(record)
    }
    return {
        name: _value(value)
        for name, (value, default) in given.items()
        if name != "name" and value != default
    }


def _default(field: Field[Any]) -> object:
    return field.default if field.default_factory is MISSING else field.default_factory()


def _value(value: object) -> object:
    if isinstance(value, Mapping):
        return {name: _number(number) for name, number in value.items()}
    return value if isinstance(value, str) else _number(value)


def _number(value: Any) -> int | float:  # noqa: ANN401 - a number of numpy has no plain type
    """Return *value* as a Python number: a measured one may be of numpy."""
    return int(value) if isinstance(value, int) else float(value)


def _flow(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_flow(n)}: {_flow(v)}" for n, v in value.items()) + "}"
    if isinstance(value, str):
        plain = _PLAIN_NAME.fullmatch(value) and value.lower() not in _WORDS
        return value if plain else json.dumps(value, ensure_ascii=False)
    return repr(value)

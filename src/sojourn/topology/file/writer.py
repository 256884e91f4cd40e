"""Writes topology files, without loss: a topology that is read back is equal."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any

from sojourn.errors import BadFile
from sojourn.topology import Arrival, Operator, Topology
from sojourn.topology.file.reader import FORMAT
from sojourn.topology.node_cores import NodeCores

# Other names are quoted: YAML might read them as numbers or syntax.
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_./ -]*[A-Za-z0-9_]|[A-Za-z_]")
_WORDS = ("null", "true", "false")


def write_topology(topology: Topology, path: Path, *, remarks: Iterable[str] = ()) -> None:
    """Write *topology* to a file: JSON if its name ends in .json, otherwise YAML.

    *remarks* are comments at the top of YAML. Raise `BadFile` if it cannot be written.
    """
    text = topology_text(topology, remarks=remarks)
    if path.suffix.lower() == ".json":
        document = topology_document(topology, defaults=False)
        text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
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
    for section, value in topology_document(topology, defaults=False).items():
        if isinstance(value, dict):
            lines.append(f"{section}:")
            lines += [f"  {_flow(name)}: {_flow(record)}" for name, record in value.items()]
        else:
            lines.append(f"{section}: {_flow(value)}")
    return "\n".join(lines) + "\n"


def topology_document(topology: Topology, *, defaults: bool = True) -> dict[str, Any]:
    """Return the content of the file, with or without default values."""
    document: dict[str, Any] = {
        "format": FORMAT,
        "name": topology.name,
        "arrivals": {a.name: _record(a, defaults=defaults) for a in topology.arrivals},
        "operators": {o.name: _record(o, defaults=defaults) for o in topology.operators},
    }
    if defaults or topology.cores is not None:
        document["cores"] = _value(topology.cores)
    return document


def _record(record: Arrival | Operator, *, defaults: bool) -> dict[str, Any]:
    return {
        field.name: _value(value)
        for field in fields(record)
        for value in (getattr(record, field.name),)
        if field.name != "name" and (defaults or value != _default(field))
    }


def _default(field: Field[Any]) -> object:
    return field.default if field.default_factory is MISSING else field.default_factory()


def _value(value: object) -> object:
    if isinstance(value, NodeCores):  # limits on added nodes are settings of the run
        return _value(value.nodes)
    if isinstance(value, Mapping):
        return {name: _number(number) for name, number in value.items()}
    return value if value is None or isinstance(value, str) else _number(value)


def _number(value: Any) -> int | float:  # noqa: ANN401 - a number of numpy has no plain type
    """Return *value* as a Python number: measured values may be numpy's."""
    return int(value) if isinstance(value, int) else float(value)


def _flow(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_flow(n)}: {_flow(v)}" for n, v in value.items()) + "}"
    if isinstance(value, str):
        plain = _PLAIN_NAME.fullmatch(value) and value.lower() not in _WORDS
        return value if plain else json.dumps(value, ensure_ascii=False)
    return repr(value)

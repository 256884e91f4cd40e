"""Reads topology files.

The records of `sojourn.topology` check their values; this module adds file and line to their
errors.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import yaml

from sojourn.errors import BadFile, BadTopology
from sojourn.text import shown
from sojourn.topology import Arrival, Operator, Topology
from sojourn.topology.node_cores import NodeCores

FORMAT = 1
"""The version of the file format."""

_TOP = ("format", "name", "arrivals", "operators")
_MORE = ("cores",)

# Numbers as in YAML 1.2, nearly those of JSON. YAML 1.1, the parser's default, reads 1e3 as
# text, 1:30 as ninety, and no as False.
_INTEGER = re.compile(r"[-+]?[0-9]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_WORDS = {
    "": None, "~": None, "null": None, "true": True, "false": False,
    ".nan": float("nan"), ".inf": float("inf"), "-.inf": float("-inf"), "+.inf": float("inf"),
}  # fmt: skip

# Far more than the format needs: arrivals.frames.into.extract has four levels.
_DEEPEST = 20
# Longer integers are infinite as floats, and Python rejects very long ones.
_LONGEST_INTEGER = 400


def read_topology(path: Path) -> Topology:
    """Return the topology in the file at *path*.

    Raise `BadFile` if it cannot be read, and a `BadTopology` with the place if it is not valid.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        problem = f"is not UTF-8 text (byte {error.start})"
        raise BadFile(str(path), problem, "save it as UTF-8") from error
    except (OSError, ValueError) as error:
        problem = getattr(error, "strerror", None) or str(error)
        raise BadFile(str(path), f"cannot be read: {problem}", "check the path") from error
    return parse_topology(text, source=str(path))


def parse_topology(text: str, *, source: str = "topology") -> Topology:
    """Return the topology in *text*, which is YAML or JSON.

    >>> parse_topology('''
    ... format: 1
    ... name: counter
    ... arrivals: {lines: {per_s: 1e3, into: count}}
    ... operators: {count: {service_s: -1}}
    ... ''', source="counter.yaml")
    Traceback (most recent call last):
    ...
    sojourn.errors.BadNumber: counter.yaml:5: operators.count.service_s: -1 is negative, ...
    """
    document = _parse(text, source)
    try:
        return _topology(document.value)
    except BadTopology as error:
        line = document.line_of(error.place)
        error.source = f"{source}:{line}" if line else source
        raise


@dataclass(frozen=True, slots=True)
class _Document:
    """A parsed file: plain values, and the line number of each place."""

    value: object
    lines: Mapping[str, int] = field(default_factory=dict)

    def line_of(self, place: str) -> int | None:
        """Return the line of *place*, or of the place that encloses it."""
        while place not in self.lines and "." in place:
            place = place.rpartition(".")[0]
        return self.lines.get(place)


def _topology(document: object) -> Topology:
    top = _mapping("the file", document, "write format: 1, name, arrivals and operators")
    _fields("", top, required=_TOP, known=(*_TOP, *_MORE))
    if top["format"] != FORMAT or isinstance(top["format"], bool):
        problem = f"format {shown(top['format'])} is not supported"
        raise BadTopology("format", problem, f"write format: {FORMAT}")
    arrivals = _mapping("arrivals", top["arrivals"], "write frames: {per_s: 13, into: extract}")
    operators = _mapping("operators", top["operators"], "write extract: {service_s: 0.5}")
    cores = top.get("cores")
    return Topology(
        name=top["name"],
        arrivals=tuple(
            Arrival(name=name, **_record(Arrival, f"arrivals.{name}", value))
            for name, value in arrivals.items()
        ),
        operators=tuple(
            Operator(name=name, **_record(Operator, f"operators.{name}", value))
            for name, value in operators.items()
        ),
        cores=NodeCores(nodes=cores) if isinstance(cores, Mapping) else cores,
    )


def _record(kind: type[Arrival | Operator], place: str, value: object) -> Mapping[str, Any]:
    """Return the fields of a record without its name; their values are checked later."""
    given = _mapping(place, value, "write its fields, such as {service_s: 0.5}")
    known = [f for f in fields(kind) if f.name != "name"]
    required = [f.name for f in known if f.default is MISSING and f.default_factory is MISSING]
    _fields(place, given, required=required, known=[f.name for f in known])
    return given


def _fields(
    place: str, given: Mapping[str, Any], *, required: Sequence[str], known: Sequence[str]
) -> None:
    inside = f"{place}." if place else ""
    for name in given:
        if name not in known:
            close = get_close_matches(str(name), known, n=1)
            way_out = f"did you mean {close[0]}?" if close else f"fields are {', '.join(known)}"
            problem = f"unknown field {shown(name)}"
            raise BadTopology(f"{inside}{name}", problem, way_out)
    for name in required:
        if name not in given:
            raise BadTopology(place or name, f"the field {name} is missing", "add it")


def _mapping(place: str, value: object, way_out: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        found = "nothing" if value is None else shown(value)
        raise BadTopology(place, f"{found} is not a mapping", way_out)
    return value


def _parse(text: str, source: str) -> _Document:
    if text.lstrip().startswith("{"):
        try:
            return _Document(json.loads(text, object_pairs_hook=_no_twins, parse_int=_integer))
        except (ValueError, RecursionError) as error:
            # YAML in flow style begins with a brace too
            if source.endswith(".json"):
                raise BadFile(source, f"is not valid JSON: {error}", "correct it") from error
    node, lines = _compose(text, source), dict[str, int]()
    try:
        return _Document(_plain(node, "", lines, {}), lines)
    except BadTopology as error:
        error.source = f"{source}:{_Document(None, lines).line_of(error.place) or 1}"
        raise


def _compose(text: str, source: str) -> yaml.Node | None:
    # nodes, unlike loaded values, have line numbers
    try:
        node: yaml.Node | None = yaml.compose(text, Loader=yaml.BaseLoader)
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        where, problem = f"{source}:{line}", f"U+{error.character:04X} is not allowed"
        raise BadFile(where, f"is not valid YAML: {problem}", "remove it") from error
    except yaml.MarkedYAMLError as error:
        where = f"{source}:{error.problem_mark.line + 1}" if error.problem_mark else source
        problem = ", ".join(filter(None, (error.context, error.problem)))
        raise BadFile(where, f"is not valid YAML: {problem}", "correct it") from error
    except RecursionError as error:
        raise BadFile(source, "is nested too deeply", "flatten it") from error
    except (ValueError, OverflowError) as error:  # the parser lets them through
        raise BadFile(source, f"is not valid YAML: {error}", "correct it") from error
    return node


def _no_twins(pairs: list[tuple[str, object]]) -> dict[str, object]:
    made: dict[str, object] = {}
    for name, value in pairs:
        if name in made:
            raise ValueError(f"the name {shown(name)} occurs twice in one object")
        made[name] = value
    return made


def _plain(
    node: yaml.Node | None,
    place: str,
    lines: dict[str, int],
    made: dict[int, object],
    depth: int = 0,
) -> Any:  # noqa: ANN401 - a file may hold anything
    """Return a YAML node as plain values, and add the line of each place to *lines*.

    *made* caches values by node: a node with many aliases is converted once. Otherwise a small
    file of nested aliases could expand to gigabytes.
    """
    if node is None:
        return None
    lines.setdefault(place, node.start_mark.line + 1)
    if id(node) in made:
        return made[id(node)]
    if isinstance(node, yaml.ScalarNode):
        made[id(node)] = _scalar(node)
    elif depth >= _DEEPEST:
        raise BadTopology(place, "it is nested too deeply", "flatten it")
    elif isinstance(node, yaml.SequenceNode):
        made[id(node)] = [
            _plain(item, f"{place}.{i}", lines, made, depth + 1)
            for i, item in enumerate(node.value)
        ]
    else:
        made[id(node)] = _mapped(node, place, lines, made, depth + 1)
    return made[id(node)]


def _mapped(
    node: yaml.Node, place: str, lines: dict[str, int], made: dict[int, object], depth: int
) -> dict[str, object]:
    values: dict[str, object] = {}
    for key, value in node.value:
        name = _plain(key, "", {}, {}, depth)
        written = name if isinstance(name, str) else shown(name)
        inside = f"{place}.{written}" if place else written
        lines[inside] = key.start_mark.line + 1
        if not isinstance(name, str):
            problem = f"{written} is not a name"
            raise BadTopology(inside, problem, "put it in quotes")
        if name in values:
            raise BadTopology(inside, "the name occurs twice", "rename or remove one")
        values[name] = _plain(value, inside, lines, made, depth)
    return values


def _scalar(node: yaml.ScalarNode) -> object:
    text: str = node.value
    if node.style is not None:  # in quotes
        return text
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if _INTEGER.fullmatch(text):
        return _integer(text)
    return float(text) if _FLOAT.fullmatch(text) else text


def _integer(text: str) -> float:
    return int(text) if len(text) < _LONGEST_INTEGER else float(text)

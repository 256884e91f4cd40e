"""Serialises runs, turns of the loop and plans, without loss.

The text is strict JSON, which SQLite and other programs can read. JSON has no NaN and no
infinity: they are written as `{"float": "nan"}`. Invalid input raises ValueError, TypeError,
KeyError, `BadAllocation`, or an error of `struct` or `zlib`.
"""

import json
import sqlite3
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import datetime
from math import inf, isfinite
from typing import Any

import numpy as np

from sojourn.decide.objective import Objective, Slice
from sojourn.decide.plan import Expected, NodePlan, Plan
from sojourn.decide.target import Target
from sojourn.engine import Cost
from sojourn.errors import BadInput
from sojourn.knowledge import Decision, Episode, JudgedSlice, Wish
from sojourn.measure.births import Births
from sojourn.measure.node_costs import NodeCosts
from sojourn.measure.observation import (
    Moments,
    Observation,
    ObservedNode,
    ObservedOperator,
)
from sojourn.measure.sketch import Sketch
from sojourn.text import shown
from sojourn.topology import Topology
from sojourn.topology.file import parse_topology, topology_document

# The number of buckets, the number that are not empty, the sum, and the sum of squares.
_HEAD = struct.Struct("<IIdd")
# The fields of a wish that a plan lacks. The others are written only where they differ from the
# plan after the decision.
_OF_WISH = ("goal", "wanted", "offered", "noise", "limited")


def record_text(record: Episode | Plan) -> str:
    """Return *record* as JSON, without its sketches."""
    return json.dumps(_plain(record), allow_nan=False, separators=(",", ":"))


def episode_of(text: str, completions: Sketch, sums: Sketch) -> Episode:
    turn = json.loads(text, object_hook=_number)
    seen, cost = turn["observation"], turn["cost"]
    return Episode(
        observation=Observation(
            **{
                **seen,
                "notes": tuple(seen["notes"]),
                "operators": {name: _operator(o) for name, o in seen["operators"].items()},
                "nodes": {name: ObservedNode(**node) for name, node in seen["nodes"].items()},
                "node_costs": NodeCosts(**seen.get("node_costs", {})),
                "births": tuple(Births(**births) for births in seen.get("births", ())),
                "completions": completions,
                "sums": sums,
            }
        ),
        decision=_decision(turn["decision"]),
        cost=cost
        and Cost(
            **{**cost, "changed": {name: tuple(pair) for name, pair in cost["changed"].items()}}
        ),
        failure=turn["failure"],
        target=turn["target"] and Target(**turn["target"]),
        judged=tuple(map(_judged, turn.get("judged", ()))),
    )


def plan_of(text: str) -> Plan:
    return _plan(json.loads(text, object_hook=_number))


def sketch_bytes(sketch: Sketch) -> bytes:
    """Return the non-empty buckets of *sketch*, compressed."""
    filled = np.flatnonzero(sketch.counts)
    head = _HEAD.pack(len(sketch.counts), len(filled), sketch.sum_s, sketch.sum_ss)
    buckets, counts = filled.astype("<u4"), sketch.counts[filled].astype("<i8")
    return zlib.compress(head + buckets.tobytes() + counts.tobytes())


def sketch_of(data: bytes) -> Sketch:
    """Return the sketch decoded from *data*. Raise ValueError if its size differs."""
    plain = zlib.decompress(data)
    size, filled, sum_s, sum_ss = _HEAD.unpack_from(plain)
    counts = Sketch.empty().counts
    if size != len(counts):
        raise ValueError(f"the sketch has {size} buckets, but this version needs {len(counts)}")
    buckets = np.frombuffer(plain, "<u4", filled, _HEAD.size)
    counts[buckets] = np.frombuffer(plain, "<i8", filled, _HEAD.size + buckets.nbytes)
    return Sketch.of_counts(counts, sum_s, sum_ss)


def _judged(found: dict[str, Any]) -> JudgedSlice:
    objective = found["objective"]
    target = Target(**objective["target"])
    return JudgedSlice(
        **{
            **found,
            "slice": Slice(**found["slice"]),
            "objective": Objective(**{**objective, "target": target}),
        }
    )


def _decision(found: dict[str, Any]) -> Decision:
    after = _plan(found["after"])
    said = {name: found[name] for name in _OF_WISH if name in found} | found.get("wish", {})
    expected = said.get("expected")
    if expected is not None:
        said["expected"] = Expected(**expected)
    wish = replace(Wish.of(after), **said)
    return Decision(at_s=found["at_s"], before=_plan(found["before"]), after=after, wish=wish)


def _plan(found: dict[str, Any]) -> Plan:
    expected, nodes = found.get("expected"), found.get("nodes")
    if nodes is not None:
        nodes = NodePlan(**{**nodes, "given_back": tuple(nodes["given_back"])})
    return Plan(**{**found, "expected": expected and Expected(**expected), "nodes": nodes})


def _operator(found: dict[str, Any]) -> ObservedOperator:
    moments = {which: Moments(**found[which]) for which in ("service", "wait", "transfer")}
    return ObservedOperator(**{**found, **moments})


def _plain(value: object) -> Any:  # noqa: ANN401 - whatever JSON takes
    if isinstance(value, np.generic):  # an engine may have counted with numpy
        return _plain(value.item())
    if isinstance(value, float):
        return value if isfinite(value) else {"float": str(value)}
    if isinstance(value, Mapping):
        return {name: _plain(inside) for name, inside in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(inside) for inside in value]
    if is_dataclass(value):
        return {
            name: _plain(v) for name, v in _inside(value).items() if not isinstance(v, Sketch)
        }
    return value


def _inside(record: Any) -> dict[str, Any]:  # noqa: ANN401 - any dataclass
    given = [field.name for field in fields(record) if field.init]  # others are derived
    inside = {name: getattr(record, name) for name in given}
    if isinstance(record, Decision):
        wish, carried_out = inside.pop("wish"), Wish.of(record.after)
        inside |= {name: getattr(wish, name) for name in _OF_WISH}
        said = {name: getattr(wish, name) for name in ("allocation", "reason", "expected")}
        if any(value != getattr(carried_out, name) for name, value in said.items()):
            inside["wish"] = said
    return inside


def _number(found: dict[str, Any]) -> object:
    """Decode NaN and infinity; no other object has a string field called `float`."""
    if found.keys() == {"float"} and isinstance(found["float"], str):
        return float(found["float"])
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    topology: Topology
    """The declared topology."""
    plan: Plan
    """The initial plan."""
    started_at: datetime
    """The wall-clock time when the engine's clock was 0."""
    every_s: float
    """The time between two turns."""
    policy: str
    """A description of the policy."""
    target: Target | None = None
    midnight_s: float = 0.0
    """The time of day when the engine's clock was 0."""

    def __post_init__(self) -> None:
        if not 0 < self.every_s < inf:
            raise BadInput(f"every_s is {shown(self.every_s)}; write more than 0")
        if not isfinite(self.midnight_s):
            raise BadInput(f"midnight_s is {shown(self.midnight_s)}; write a number of seconds")
        if self.started_at.utcoffset() is None:
            raise BadInput(
                f"started_at is {self.started_at}, without a time zone; "
                "give it one: datetime.now(UTC)"
            )


def run_columns(run: Run) -> dict[str, str | float | None]:
    target = run.target
    return {
        "started_at": run.started_at.isoformat(),
        "every_s": run.every_s,
        "policy": run.policy,
        "target_statistic": None if target is None else target.statistic,
        "target_s": None if target is None else target.seconds,
        "midnight_s": run.midnight_s,
        "allocation": json.dumps(run.plan.allocation, ensure_ascii=False),
        "plan": record_text(run.plan),
        "topology": json.dumps(topology_document(run.topology), ensure_ascii=False),
    }


def run_of(row: sqlite3.Row, source: str) -> Run:
    """Return the run of a row, whose topology is checked like a topology file."""
    aims = row["target_statistic"] is not None
    return Run(
        topology=parse_topology(row["topology"], source=source),
        plan=plan_of(row["plan"]),
        started_at=datetime.fromisoformat(row["started_at"]),
        every_s=row["every_s"],
        policy=row["policy"],
        target=Target(row["target_statistic"], row["target_s"]) if aims else None,
        midnight_s=row["midnight_s"],
    )

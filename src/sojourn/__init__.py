"""Sojourn keeps streaming applications inside their latency target, on few processors.

>>> import sojourn as sj
>>> vld = sj.Topology(
...     name="vld",
...     arrivals=(sj.Arrival(name="frames", per_s=13, into="extract"),),
...     operators=(
...         sj.Operator(name="extract", service_s=0.50, emits={"match": 1}),
...         sj.Operator(name="match", service_s=0.55, emits={"aggregate": 1}),
...         sj.Operator(name="aggregate", service_s=0.02),
...     ),
... )
>>> sj.assign(vld, 22).allocation
{'extract': 10, 'match': 11, 'aggregate': 1}
>>> sj.minimise(vld, sj.Target("p95", 3.0)).processors
18
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sojourn.act.policy import Policy, policy
    from sojourn.app.application import App
    from sojourn.app.operator import Hints, OnError
    from sojourn.app.reminder import Reminder, State
    from sojourn.app.schema import Schema, parse_schema
    from sojourn.app.stream import Avro
    from sojourn.decide.assign import assign
    from sojourn.decide.explain import Explanation, explain
    from sojourn.decide.headroom import Headroom, headroom
    from sojourn.decide.minimise import minimise
    from sojourn.decide.neighbours import Neighbour, neighbours
    from sojourn.decide.objective import Objective
    from sojourn.decide.plan import Plan
    from sojourn.decide.solution import NodeSize, Solution
    from sojourn.decide.target import Target
    from sojourn.engine import Engine
    from sojourn.errors import SojournError
    from sojourn.history import HistoryFile
    from sojourn.knowledge import Knowledge
    from sojourn.loop import Loop
    from sojourn.model.calibration import Calibration, Pair, fit
    from sojourn.model.network import Prediction, predict
    from sojourn.simulate.rehearsal import Rehearsal, Score, Stage, rehearse
    from sojourn.simulate.simulator import Simulator
    from sojourn.simulate.workload import Rates, Workload
    from sojourn.topology import Arrival, Operator, Topology
    from sojourn.topology.file import parse_topology, read_topology, write_topology
    from sojourn.topology.load import StationLoad

__all__ = [
    "App", "Arrival", "Avro", "Calibration", "Engine", "Explanation", "Headroom", "Hints",
    "HistoryFile", "Knowledge", "Loop", "Neighbour", "NodeSize", "Objective", "OnError",
    "Operator", "Pair", "Plan", "Policy", "Prediction", "Rates", "Rehearsal", "Reminder",
    "Schema", "Score", "Simulator", "SojournError", "Solution", "Stage", "State", "StationLoad",
    "Target", "Topology", "Workload",
    "assign", "explain", "fit", "headroom", "minimise", "neighbours", "parse_schema",
    "parse_topology", "policy", "predict", "read_topology", "rehearse", "write_topology",
]  # fmt: skip

# Imported at first use: a host needs neither the planner nor numpy, and starts in a third of
# the time without them.
_HOMES = {
    "sojourn.act.policy": ("Policy", "policy"),
    "sojourn.app.application": ("App",),
    "sojourn.app.stream": ("Avro",),
    "sojourn.app.operator": ("Hints", "OnError"),
    "sojourn.app.reminder": ("Reminder", "State"),
    "sojourn.app.schema": ("Schema", "parse_schema"),
    "sojourn.decide.assign": ("assign",),
    "sojourn.decide.explain": ("Explanation", "explain"),
    "sojourn.decide.headroom": ("Headroom", "headroom"),
    "sojourn.decide.minimise": ("minimise",),
    "sojourn.decide.neighbours": ("Neighbour", "neighbours"),
    "sojourn.decide.objective": ("Objective",),
    "sojourn.decide.solution": ("NodeSize", "Solution"),
    "sojourn.decide.target": ("Target",),
    "sojourn.engine": ("Engine",),
    "sojourn.errors": ("SojournError",),
    "sojourn.history": ("HistoryFile",),
    "sojourn.knowledge": ("Knowledge",),
    "sojourn.loop": ("Loop",),
    "sojourn.model.calibration": ("Calibration", "Pair", "fit"),
    "sojourn.model.network": ("Prediction", "predict"),
    "sojourn.simulate.rehearsal": ("Rehearsal", "Score", "Stage", "rehearse"),
    "sojourn.simulate.simulator": ("Simulator",),
    "sojourn.simulate.workload": ("Rates", "Workload"),
    "sojourn.topology": ("Arrival", "Operator", "Topology"),
    "sojourn.topology.file": ("parse_topology", "read_topology", "write_topology"),
    "sojourn.topology.load": ("StationLoad",),
    "sojourn.decide.plan": ("Plan",),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOME[name]), name)
    return value


def __dir__() -> list[str]:
    return __all__

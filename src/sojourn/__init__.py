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

from sojourn.decide.assign import assign
from sojourn.decide.explain import Explanation, explain
from sojourn.decide.headroom import Headroom, headroom
from sojourn.decide.minimise import minimise
from sojourn.decide.neighbours import Neighbour, neighbours
from sojourn.decide.plan import Nodes, Plan, Target
from sojourn.errors import SojournError
from sojourn.load import StationLoad
from sojourn.model.calibration import Calibration, Pair, fit
from sojourn.model.network import Prediction, predict
from sojourn.topology import Arrival, Operator, Topology
from sojourn.topology_file import parse_topology, read_topology

__all__ = [
    "Arrival",
    "Calibration",
    "Explanation",
    "Headroom",
    "Neighbour",
    "Nodes",
    "Operator",
    "Pair",
    "Plan",
    "Prediction",
    "SojournError",
    "StationLoad",
    "Target",
    "Topology",
    "assign",
    "explain",
    "fit",
    "headroom",
    "minimise",
    "neighbours",
    "parse_topology",
    "predict",
    "read_topology",
]

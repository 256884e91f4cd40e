"""A pull: all counters that an engine reports for one observation.

Nothing is validated here; `aggregate` validates a pull, and names the fault.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sojourn.measure.counters import OperatorReport
from sojourn.measure.node_costs import NodeCosts
from sojourn.measure.sketch import Sketch


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RootReport:
    """The roots that entered and completed in the interval."""

    entered: int
    completed: int
    completions: Sketch = field(default_factory=Sketch.empty)
    """Completion of the traced roots: from entry until the whole tree is processed."""
    sums: Sketch = field(default_factory=Sketch.empty)
    """Sums of the sojourns of all records of a root's tree, for the traced roots."""
    streams: Mapping[str, int] = field(default_factory=dict)
    """Roots that entered by each stream, if known."""

    def __add__(self, later: "RootReport") -> "RootReport":
        same = self.streams.keys() == later.streams.keys()
        return RootReport(
            entered=self.entered + later.entered,
            completed=self.completed + later.completed,
            completions=self.completions + later.completions,
            sums=self.sums + later.sums,
            streams={name: n + later.streams[name] for name, n in self.streams.items()}
            if same
            else {},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeReport:
    """The cores of a node.

    Nodes that share cores, because they are on one machine, have equal parts of both figures.
    """

    cores: float
    busy_cores: float | None = None
    """CPU seconds per second of all processes on these cores, if known."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pull:
    """All counters from *since_s* until *at_s*, on the engine's clock."""

    since_s: float
    at_s: float
    operators: tuple[OperatorReport, ...]
    roots: RootReport
    cores: float | None = None
    """Cores of the machine; None if not measured. A cluster reports them in `nodes`."""
    busy_cores: float | None = None
    """CPU seconds per second of all processes of the machine; None if not measured."""
    nodes: Mapping[str, NodeReport] = field(default_factory=dict)
    """The nodes of a cluster, in the order in which they get processors."""
    node_costs: NodeCosts = field(default_factory=NodeCosts)
    warming: bool = False
    """Whether the application has just started: code is imported and compiled, and times are
    not representative."""
    commits: int = 0
    """Batches that ended in the interval; records waited for them."""
    notes: tuple[str, ...] = ()
    """Corrections that the engine made."""

"""A pull: all counters that an engine returns at a look.

Nothing is checked here: `aggregate` checks what it is given, and names what is wrong.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sojourn.measure.counters import OperatorReport
from sojourn.measure.node_costs import NodeCosts
from sojourn.measure.sketch import Sketch

__all__ = ["NodeReport", "Pull", "RootReport"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RootReport:
    """Roots that entered, in total and by stream if that is known, and that completed.

    *completions* has the times from a root's entry until its whole tree was done, *sums* the
    sums of the sojourns of all records of its tree; both for the completed roots that were
    traced.
    """

    entered: int
    completed: int
    completions: Sketch = field(default_factory=Sketch.empty)
    sums: Sketch = field(default_factory=Sketch.empty)
    streams: Mapping[str, int] = field(default_factory=dict)

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
    """The cores of a node, and the CPU seconds per second of all that runs on them, if known.

    Nodes that share cores, because they are on one machine, have equal parts of both.
    """

    cores: float
    busy_cores: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pull:
    """All counters from *since_s* until *at_s*, on the engine's clock.

    *cores* are those of the machine, and *busy_cores* the CPU seconds per second of all its
    processes; None if not measured. On a cluster they are in *nodes*, by name, in the order in
    which nodes get processors; *node_costs* is how long nodes took to come and to go. While it
    is *warming* up the application has just
    started: code is imported and compiled, and times are not representative. *commits* is the
    number of batches that ended in the interval; records waited for them. *notes* say what the
    engine corrected.
    """

    since_s: float
    at_s: float
    operators: tuple[OperatorReport, ...]
    roots: RootReport
    cores: float | None = None
    busy_cores: float | None = None
    nodes: Mapping[str, NodeReport] = field(default_factory=dict)
    node_costs: NodeCosts = field(default_factory=NodeCosts)
    warming: bool = False
    commits: int = 0
    notes: tuple[str, ...] = ()

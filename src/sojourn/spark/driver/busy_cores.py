"""How busy the cores of this machine and of nodes were."""

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from sojourn.decide.plan import Node
from sojourn.measure.report import NodeReport
from sojourn.spark.agent.resources import core_use
from sojourn.spark.wire.counters import NodeState


class CpuUsage:
    """The cores that this process may use, and how many of them are busy."""

    def __init__(self) -> None:
        now = core_use()
        self.cores = now.cores
        self._at_s, self._used_s = time.monotonic(), now.used_s

    def busy_cores(self, now_s: float) -> float | None:
        """Return the mean of busy cores since the last call; None if unknown."""
        now, lasted_s, before_s = core_use(), now_s - self._at_s, self._used_s
        self.cores, self._used_s, self._at_s = now.cores, now.used_s, now_s
        if lasted_s <= 0 or before_s is None or now.used_s is None:
            return None
        return min(self.cores, max(0.0, (now.used_s - before_s) / lasted_s))


class NodeCpu:
    """Computes busy cores from the CPU seconds that agents reported at two looks.

    Nodes may share a pool of cores: executors on one machine, or in one container, without a
    limit of their own. Each counts with an equal part of these cores, and of their use. *last*
    is the result of the last look.
    """

    def __init__(self) -> None:
        self._before: dict[str, NodeState] = {}
        self._busy: dict[str, float | None] = {}
        self.last: Mapping[str, NodeReport] = {}

    def looked(
        self, hosts: Iterable[Mapping[str, NodeState]], nodes: Sequence[Node]
    ) -> dict[str, NodeReport]:
        """Return the cores of *nodes* and how busy they were, from the reports to *hosts*.

        For a node without a report, return the cores of the node itself, without their use.
        """
        newest: dict[str, NodeState] = {}
        for states in hosts:
            for name, state in states.items():
                if name not in newest or state.told_s > newest[name].told_s:
                    newest[name] = state
        sharing = Counter(state.pool for state in newest.values())
        self._busy = {name: self._busy_cores(name, state) for name, state in newest.items()}
        told = {
            name: _report(state.cores, self._busy[name], sharing[state.pool])
            for name, state in newest.items()
            if state.cores
        }
        self._before, self.last = newest, told
        word = {node.name: NodeReport(cores=node.cores) for node in nodes if node.cores}
        return {name: told.get(name, report) for name, report in word.items()}

    def _busy_cores(self, name: str, now: NodeState) -> float | None:
        """Return how many cores of the whole pool were busy; None if unknown."""
        before = self._before.get(name)
        if before is None or before.pool != now.pool:
            return None
        if now.told_s == before.told_s:  # agents report once a second; looks may be closer
            return self._busy[name]
        if now.told_s < before.told_s:  # a new agent, after a reboot of the machine
            return None
        if before.cpu_s is None or now.cpu_s is None:
            return None
        return max(0.0, (now.cpu_s - before.cpu_s) / (now.told_s - before.told_s))


def _report(cores: float, busy: float | None, sharing: int) -> NodeReport:
    return NodeReport(
        cores=cores / sharing,
        # CPU time is counted with a small delay, so the quotient may exceed the cores
        busy_cores=None if busy is None else min(cores, busy) / sharing,
    )

"""Machines that are added to a running application, and removed, with the time it takes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from sojourn.act.node_scaling import NodeBounds
from sojourn.decide.solution import NodeSize


@dataclass(frozen=True, slots=True, kw_only=True)
class MachinePool:
    """Machines of one size, of which an application may have at *most* so many."""

    nodes: NodeSize
    most: int

    @property
    def bounds(self) -> NodeBounds:
        """The bounds of machines, which DRS removes as soon as it has decided to."""
        return NodeBounds(most=self.most, processors=self.nodes.slots, calm_s=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineChange:
    """A machine that was added or removed, complete at *at_s* of the engine's clock.

    It took *took_s* of real time since the processors that called for it were decided on. An
    added machine is complete when its processors can take records, and could be used
    after *ready_s*. A removed one is complete when it is gone, and had no processors left after
    *ready_s*.
    """

    kind: Literal["added", "removed"]
    at_s: float
    took_s: float
    ready_s: float

    def __str__(self) -> str:
        """Return how long it took.

        >>> print(MachineChange(kind="added", at_s=60.0, took_s=8.04, ready_s=6.5))
        a machine was added in 8.0 s; it could be used after 6.5 s
        """
        half = "it could be used" if self.kind == "added" else "it had no processors"
        return (
            f"a machine was {self.kind} in {self.took_s:.1f} s; {half} after "
            f"{self.ready_s:.1f} s"
        )


@runtime_checkable
class ChangesMachines(Protocol):
    """An engine that may have machines which come and go as the processors need them."""

    @property
    def machine_changes(self) -> tuple[MachineChange, ...] | None:
        """The machines that were added and removed so far; None if it has no machines."""
        ...


def machine_changes(engine: object) -> tuple[MachineChange, ...] | None:
    """Return the machines that *engine* added and removed; None if it has no machines."""
    return engine.machine_changes if isinstance(engine, ChangesMachines) else None


class MachineLog:
    """Tells from looks at the nodes of an application which were added and removed.

    >>> log = MachineLog()
    >>> log.look(0.0, wanted=1, planned={"a": 5}, running={"a": 5})
    >>> log.look(1.0, wanted=2, planned={"a": 9}, running={"a": 9})
    >>> log.look(7.0, wanted=2, planned={"a": 5, "b": 4}, running={"a": 9, "b": 0})
    >>> log.look(9.0, wanted=2, planned={"a": 5, "b": 4}, running={"a": 5, "b": 4})
    >>> [str(change) for change in log.changes]
    ['a machine was added in 8.0 s; it could be used after 6.0 s']
    """

    def __init__(self) -> None:
        self.changes: tuple[MachineChange, ...] = ()
        self._wanted, self._since_s = 0, 0.0
        self._here: set[str] | None = None
        self._ready_s: dict[str, float] = {}

    def look(
        self,
        now_s: float,
        *,
        wanted: int,
        planned: Mapping[str, int],
        running: Mapping[str, int],
    ) -> None:
        """Take note of the processors that are *planned* on nodes, and of those *running*.

        So many machines are *wanted*. The nodes of the first look were there before.
        """
        if self._here is None:
            self._here, self._wanted = set(running), wanted
        if wanted != self._wanted:
            self._wanted, self._since_s = wanted, now_s
        for node in running.keys() - self._here:
            self._ready_s.setdefault(node, now_s)
            if running[node] >= planned.get(node, 0) > 0:
                self._here.add(node)
                self._changed("added", node, now_s)
        for node in self._here & running.keys():
            if not running[node] and not planned.get(node, 0):
                self._ready_s.setdefault(node, now_s)
        for node in self._here - running.keys():
            self._here.discard(node)
            self._changed("removed", node, now_s)

    def _changed(self, kind: Literal["added", "removed"], node: str, now_s: float) -> None:
        ready_s = self._ready_s.pop(node, now_s)
        change = MachineChange(
            kind=kind,
            at_s=now_s,
            took_s=now_s - self._since_s,
            ready_s=ready_s - self._since_s,
        )
        self.changes = (*self.changes, change)

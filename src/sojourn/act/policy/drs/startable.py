"""Processors that are wanted but do not start: plans do without them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sojourn.knowledge import Knowledge
from sojourn.topology import Topology

__all__ = ["Startable", "startable"]

# A processor that has not started after this many looks in a row will not.
_LOOKS = 3


@dataclass(frozen=True, slots=True)
class Startable:
    """Operators with processors that do not start: how many run, are wanted, and why.

    >>> print(Startable({"score": 2}, {"score": 6}, {"score": "out of memory"}))
    only 2 of 6 processors of score are running (out of memory)
    """

    running: Mapping[str, int]
    wanted: Mapping[str, int]
    why: Mapping[str, str]

    def __str__(self) -> str:
        return ", ".join(
            f"only {k} of {self.wanted[name]} processors of {name} are running"
            + f" ({self.why[name]})" * bool(self.why[name])
            for name, k in self.running.items()
        )

    def runs(self, allocation: Mapping[str, int]) -> dict[str, int]:
        """Return *allocation* without processors that do not start."""
        return {name: min(k, self.running.get(name, k)) for name, k in allocation.items()}

    def bound(self, topology: Topology) -> Topology:
        """Return *topology* with `max_processors` at what can be started.

        An operator keeps its `min_processors`, whether they start or not.
        """
        operators = [topology.operator[name] for name in self.running]
        return topology.with_operators(
            *(
                replace(o, max_processors=max(self.running[o.name], o.min_processors))
                for o in operators
            )
        )


def startable(knowledge: Knowledge) -> Startable:
    """Return the operators that had fewer processors than wanted in each of the last looks."""
    lately = [o for o in knowledge.observations if o.usable][-_LOOKS:]
    short = {
        name: max(1, *(o.operators[name].running for o in lately))
        for name in knowledge.topology.operator
        if len(lately) == _LOOKS
        and all(o.operators[name].running < o.operators[name].wanted for o in lately)
    }
    last = lately[-1].operators if lately else {}
    return Startable(
        running={name: k for name, k in short.items() if k < knowledge.allocation[name]},
        wanted={name: knowledge.allocation[name] for name in short},
        why={name: last[name].missing for name in short},
    )

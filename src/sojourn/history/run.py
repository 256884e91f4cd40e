"""One run of the loop, with its settings."""

import json
import sqlite3
from dataclasses import dataclass
from datetime import datetime
from math import inf, isfinite

from sojourn.decide.plan import Plan
from sojourn.decide.target import Target
from sojourn.errors import BadInput
from sojourn.history.format import plan_of, record_text
from sojourn.text import shown
from sojourn.topology import Topology
from sojourn.topology.file import parse_topology, topology_document

__all__ = ["Run", "run_columns", "run_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The settings of a run of the loop."""

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
    """Return *run* as a row of the table `runs`."""
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

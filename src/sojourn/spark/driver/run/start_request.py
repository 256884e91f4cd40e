"""The request to start an application: its settings, and its first plan."""

from dataclasses import dataclass

from sojourn.decide.plan import Plan
from sojourn.engine import Progress
from sojourn.spark.driver.layout import Layout
from sojourn.spark.driver.run.run_end import RunEnd
from sojourn.spark.driver.settings import SparkSettings
from sojourn.spark.wire.handshake import RunIdentity

__all__ = ["StartRequest"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StartRequest:
    """The request to start an application."""

    layout: Layout
    settings: SparkSettings
    plan: Plan
    """The first placement of processors."""
    identity: RunIdentity | None
    """The key and certificate that encrypt connections between machines, if any."""
    end: RunEnd
    """Receives failures of the run."""
    progress: Progress
    """Receives the steps of the start."""
    patience_s: float = 120.0
    """The longest wait for nodes, for processors, and for relays before the start fails."""

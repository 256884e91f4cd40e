"""What is asked of a start: the application, its settings, and the plan that it begins with."""

from dataclasses import dataclass

from sojourn.decide.plan import Plan
from sojourn.engine import Progress
from sojourn.spark.driver.layout import Layout
from sojourn.spark.driver.run.run_end import RunEnd
from sojourn.spark.driver.settings import SparkSettings
from sojourn.spark.wire.encryption import RunIdentity

__all__ = ["StartRequest"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StartRequest:
    """An application to be started with the processors of *plan*.

    With an *identity*, connections between machines are encrypted. Failures of what was started
    are reported to *end*, and steps of the start to *progress*. Nodes, processors and relays
    that are not ready after *patience_s* end the start.
    """

    layout: Layout
    settings: SparkSettings
    plan: Plan
    identity: RunIdentity | None
    end: RunEnd
    progress: Progress
    patience_s: float = 120.0

"""Launch of an application on the simulator, for `sojourn run --engine simulator`."""

from pathlib import Path

from sojourn.app.application import App
from sojourn.engine import Progress
from sojourn.simulate.real_time import RealTimeSimulator
from sojourn.simulate.settings import SimulatorSettings

__all__ = ["launch"]


def launch(
    app: App,  # noqa: ARG001 - only the topology is simulated, which `start` receives
    address: str,  # noqa: ARG001
    settings: SimulatorSettings | None = None,
    state: Path | None = None,  # noqa: ARG001 - nothing is kept
    progress: Progress = lambda _line: None,  # noqa: ARG001 - starting takes no time
) -> RealTimeSimulator:
    """Return the engine, which is not started yet."""
    return RealTimeSimulator(settings)

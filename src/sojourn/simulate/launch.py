"""An application on the simulator, as `sojourn run --engine simulator` starts it."""

from pathlib import Path

from sojourn.app.application import App
from sojourn.engine import Progress
from sojourn.simulate.real_time import RealTimeSimulator
from sojourn.simulate.settings import SimulatorSettings

__all__ = ["launch"]


def launch(
    app: App,  # noqa: ARG001 - what is simulated is the topology that it is started with
    address: str,  # noqa: ARG001
    settings: SimulatorSettings | None = None,
    state: Path | None = None,  # noqa: ARG001 - it keeps nothing
    progress: Progress = lambda _line: None,  # noqa: ARG001 - it starts at once
) -> RealTimeSimulator:
    """Return the engine, not started yet."""
    return RealTimeSimulator(settings)

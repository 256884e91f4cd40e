"""Loading the simulator, which takes a second, when a command needs it."""

from collections.abc import Iterator
from contextlib import contextmanager

from sojourn.errors import BadInput
from sojourn.report.terminal.progress import working

__all__ = ["loading_simulator"]


@contextmanager
def loading_simulator() -> Iterator[None]:
    """Show progress, and say what to install if numba is missing."""
    try:
        with working("loading the simulator"):
            yield
    except ImportError as error:
        raise BadInput(
            "the simulator needs numba, which is not installed; install sojourn[simulate]"
        ) from error

"""The simulator, loaded when a command needs it."""

from collections.abc import Iterator
from contextlib import contextmanager

from sojourn.errors import BadInput
from sojourn.report.terminal.progress import working

__all__ = ["loading_simulator"]


@contextmanager
def loading_simulator() -> Iterator[None]:
    """Say what takes a second, and what to install where it is missing."""
    try:
        with working("loading the simulator"):
            yield
    except ImportError as error:
        raise BadInput(
            "the simulator needs numba, which is not installed; install sojourn[simulate]"
        ) from error

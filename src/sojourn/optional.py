"""What to install when an optional dependency is missing."""

from collections.abc import Iterator
from contextlib import contextmanager

from sojourn.errors import EngineError, SojournError

__all__ = ["optional"]


@contextmanager
def optional(what: str, extra: str, raised: type[SojournError] = EngineError) -> Iterator[None]:
    """Say what to install where an import in here fails, as an error of class *raised*.

    >>> with optional("the broker needs", "spark"):
    ...     import confluent_kafkb
    Traceback (most recent call last):
    sojourn.errors.EngineError: the broker needs confluent_kafkb, which is not installed; ...
    """
    try:
        yield
    except ImportError as error:
        raise raised(
            f"{what} {error.name or error}, which is not installed; install sojourn[{extra}]"
        ) from error

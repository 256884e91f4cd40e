"""The Spark engine for the command line, or what to install for it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from sojourn.app.application import App
from sojourn.errors import EngineError

if TYPE_CHECKING:  # Spark is optional, and slow to import
    from sojourn.spark.spark_engine import SparkEngine

__all__ = ["SparkOptions", "await_unused", "spark_engine"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkOptions:
    """How an application runs on Spark, as the command line was told."""

    servers: str | None
    kafka: Mapping[str, str] = field(repr=False)  # there may be secrets in it
    batch_s: float
    starting: str | float
    patience_s: float = 900.0
    broker_port: int | None = None


def spark_engine(
    app: App,
    address: str,
    options: SparkOptions,
    state: Path,
    progress: Callable[[str], None] = lambda _line: None,
) -> "SparkEngine":
    """Return the engine, not started yet. Raise `EngineError` if something is missing.

    *progress* is told what its start waits for.
    """
    try:
        from sojourn.spark.java import find_java  # noqa: PLC0415
        from sojourn.spark.settings import SparkSettings  # noqa: PLC0415
        from sojourn.spark.spark_engine import SparkEngine  # noqa: PLC0415 - optional
    except ImportError as error:
        raise EngineError(
            f"running on Spark needs {error.name}, which is not installed; "
            "install sojourn[spark]"
        ) from error
    find_java()
    settings = SparkSettings(
        servers=options.servers,
        kafka=options.kafka,
        state=state,
        batch_s=options.batch_s,
        starting=options.starting,
        patience_s=options.patience_s,
        broker_port=options.broker_port,
    )
    return SparkEngine(app, address, settings, progress)


def await_unused(state: Path, progress: Callable[[str], None]) -> None:
    """Return when nothing uses a state that a run before has left."""
    from sojourn.spark.state_lock import StateLock  # noqa: PLC0415 - optional

    with StateLock(state, progress):
        pass

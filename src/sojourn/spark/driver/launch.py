"""An application on Spark, as `sojourn run` starts it."""

from dataclasses import replace
from pathlib import Path

from sojourn.app.application import App
from sojourn.engine import Progress
from sojourn.spark.driver.jvm.java import find_java
from sojourn.spark.driver.settings import SparkSettings
from sojourn.spark.driver.spark_engine import SparkEngine

__all__ = ["launch"]


def launch(
    app: App,
    address: str,
    settings: SparkSettings | None = None,
    state: Path | None = None,
    progress: Progress = lambda _line: None,
) -> SparkEngine:
    """Return the engine, not started yet. Raise `EngineError` if there is no Java."""
    find_java()
    settings = replace(settings or SparkSettings(), state=state)
    return SparkEngine(app, address, settings, progress)

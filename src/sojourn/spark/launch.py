"""An application on Spark, as `sojourn run` starts it."""

from dataclasses import replace
from pathlib import Path

from sojourn.app.application import App
from sojourn.engine import Progress
from sojourn.spark.jvm.java import find_java
from sojourn.spark.layout import Layout
from sojourn.spark.settings import SparkSettings
from sojourn.spark.spark_engine import SparkEngine

__all__ = ["launch", "windows"]


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
    for line in windows(app, settings.batch_s):
        progress(line)
    return SparkEngine(app, address, settings, progress)


def windows(app: App, batch_s: float) -> list[str]:
    """Return how far back sinks compare where that matters: less than a batch is too little."""
    layout = Layout(app, "")
    return [
        f"sink {sink.name} is deduplicated against its last {sink.window:,} records: a batch "
        f"of {batch_s:g} s at {sink.window / batch_s:,.0f} records per second"
        for sink in layout.deduplicated
        if layout.needs_window(sink)
    ]

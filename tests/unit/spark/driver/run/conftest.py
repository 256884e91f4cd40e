"""A start that needs neither Java nor Kafka until its steps ask for them."""

import tempfile

import pytest

import sojourn as sj
from sojourn.decide.plan import Plan
from sojourn.spark.driver.layout import Layout
from sojourn.spark.driver.run.start_request import RunEnd, StartRequest
from sojourn.spark.driver.settings import SparkSettings


@pytest.fixture
def temporary(short_folder, monkeypatch):
    """Return the folder for temporary ones, which is empty."""
    monkeypatch.setattr(tempfile, "tempdir", str(short_folder))
    return short_folder


@pytest.fixture
def request_start():
    """Return what makes the request to start a small application."""

    def made(state=None, *, deduplicate=False, **settings):
        app = sj.App("echo")

        @app.operator(reads=app.source("lines", schema="line string"), emits="line string")
        def same(line):
            yield (line,)

        app.sink(same, name="once", deduplicate=deduplicate)
        return StartRequest(
            layout=Layout(app, "echo:app"),
            settings=SparkSettings(state=state, **settings),
            plan=Plan.here({"same": 1}),
            identity=None,
            end=RunEnd(),
            progress=lambda _line: None,
        )

    return made

"""An application that reads Avro with the schema of a file, and writes Avro with a registry."""

import os
from pathlib import Path

import sojourn as sj

HERE = Path(__file__).parent
REGISTRY = os.environ.get("SCHEMA_REGISTRY", "http://localhost:8081")

app = sj.App("clicks")
clicks = app.source(
    "clicks",
    schema="user string, page string, at timestamp, photo binary",
    format=sj.Avro(HERE / "clicks.avsc"),
)


@app.operator(
    reads=clicks.by("user"),
    emits="user string, n int, photo binary",
    format=sj.Avro(HERE / "visits.avsc", registry=REGISTRY, subject="visits-value"),
    on_error="dead_letter",
    service_s=0.001,
)
def visits(user, page, at, photo):
    """Yield one record per click."""
    yield user, len(page) + at.year, photo


app.sink(visits)

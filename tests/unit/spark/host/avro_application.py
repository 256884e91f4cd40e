"""An application whose records are in Avro, with a registry that the environment names."""

import os

import sojourn as sj

REGISTRY = "TEST_SCHEMA_REGISTRY"
app = sj.App("clicks")
lines = app.source(
    "lines",
    schema="line string",
    format=sj.Avro(
        registry=os.environ.get(REGISTRY, "http://localhost:9"),
        subject="lines-value",
        patience_s=float(os.environ.get("TEST_PATIENCE_S", "300")),
    ),
)


@app.operator(reads=lines, emits="line string", on_error="dead_letter")
def copied(line):
    yield (line,)


@app.operator(reads=lines.by("line"), emits="line string", on_error="dead_letter")
def keyed(line):
    yield (line,)

"""An operator with a state of a chosen size for one key, or with none: for `state_lending`."""

import os

import sojourn as sj

SIZE = int(os.environ.get("LENDING_BYTES", "0"))

app = sj.App("lending")
numbers = app.source("numbers", schema="number long, key string")


@app.operator(reads=numbers.by("key"), emits="number long")
def plain(number, _key):
    """Keep nothing."""
    yield (number,)


@app.operator(reads=numbers.by("key"), emits="number long", state={"n": 0, "text": "x" * SIZE})
def counting(state, number, _key):
    """Count, beside a text that stays as it is."""
    state["n"] += 1
    yield (number,)


app.sink(plain)
app.sink(counting)

"""An application for hosts under test, whose functions raise in various ways."""

import os
from pathlib import Path

import sojourn as sj

app = sj.App("stumbling")
lines = app.source("lines", schema="line string")


@app.operator(reads=lines, emits="line string")
def raises(line):
    if line == "half":
        raise ValueError("\ud800 is half a letter")
    if line == "long":
        raise ValueError("é" * 1_000_000)
    raise ValueError(f"{line} cannot be done")
    yield


MINE = set()


@app.operator(reads=lines, emits="processor int")
def one_of_us(line):
    """Fail on the processor that is first to make the folder, however often it tries."""
    if line not in MINE:
        try:
            Path(line).mkdir()
        except FileExistsError:
            yield (os.getpid(),)
            return
        MINE.add(line)
    raise RuntimeError("it was me")


app.sink(raises)
app.sink(one_of_us)

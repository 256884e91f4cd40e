"""An application that cannot start until the file that STARTS_WHEN names is there."""

import os
from pathlib import Path

import sojourn as sj

app = sj.App("starts")
numbers = app.source("numbers", schema="number int")


def awaited():
    """Return what every processor needs."""
    path = Path(os.environ["STARTS_WHEN"])
    if not path.exists():
        raise FileNotFoundError(f"{path.name} is missing")
    return path


@app.operator(reads=numbers, emits="number int", set_up=awaited, service_s=0.001)
def first(_path, number):
    """Yield the same number."""
    yield (number,)


@app.operator(reads=first, emits="number int", service_s=0.001)
def second(number):
    """Yield the same number."""
    yield (number,)


app.sink(second)

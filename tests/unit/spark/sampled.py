"""An application whose sources have samples."""

from itertools import count

import sojourn as sj


def photos(seed):
    for number in count():
        yield (f"{seed}-{number}", bytes([number % 256]) * 3)


def few(seed):
    yield (seed,)


def broken(seed):
    yield (seed,)
    raise ValueError("no more")


def odd(_seed):
    yield ("seven",)


app = sj.App("sampled")
sources = [
    app.source("photos", schema="name string, photo binary", samples=photos),
    app.source("few", schema="n int", samples=few),
    app.source("broken", schema="n int", samples=broken),
    app.source("odd", schema="n int", samples=odd),
    app.source("bare", schema="n int"),
]


@app.operator(reads=sources)
def ignore(_stream, _record):
    pass

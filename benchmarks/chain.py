"""Three operators that pass records on and do nothing else: what the way itself costs."""

import sojourn as sj

app = sj.App("chain")
source = app.source("source", schema="seed long")


@app.operator(reads=source, emits="seed long")
def first(seed):
    """Pass it on."""
    yield (seed,)


@app.operator(reads=first, emits="seed long")
def second(seed):
    """Pass it on."""
    yield (seed,)


@app.operator(reads=second, emits="seed long")
def third(seed):
    """Pass it on."""
    yield (seed,)


app.sink(third)

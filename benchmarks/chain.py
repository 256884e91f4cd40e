"""Three operators that pass records on and do nothing else: what the way itself costs."""

import sojourn as sj

app = sj.App("chain")
source = app.source("source", schema="number int")


@app.operator(reads=source, emits="number int")
def first(number):
    """Pass it on."""
    yield (number,)


@app.operator(reads=first, emits="number int")
def second(number):
    """Pass it on."""
    yield (number,)


@app.operator(reads=second, emits="number int")
def third(number):
    """Pass it on."""
    yield (number,)


app.sink(third)

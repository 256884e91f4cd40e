"""Three operators in a chain that take next to no time: many records in few minutes."""

import time

import sojourn as sj

_SERVICE_S = 0.0002
_PER_TRANSFER = 64

app = sj.App("light")
source = app.source("source", schema="seed long")


def _passed_on(seed):
    time.sleep(_SERVICE_S)
    yield (seed,)


@app.operator(
    reads=source,
    emits="seed long",
    service_s=_SERVICE_S,
    sends=1,
    records_per_transfer=_PER_TRANSFER,
)
def first(seed):
    """Pass it on."""
    yield from _passed_on(seed)


@app.operator(
    reads=first,
    emits="seed long",
    service_s=_SERVICE_S,
    sends=1,
    records_per_transfer=_PER_TRANSFER,
)
def second(seed):
    """Pass it on."""
    yield from _passed_on(seed)


@app.operator(
    reads=second,
    emits="seed long",
    service_s=_SERVICE_S,
    records_per_transfer=_PER_TRANSFER,
    sends=1,
)
def third(seed):
    """Pass it on."""
    yield from _passed_on(seed)


app.sink(third)

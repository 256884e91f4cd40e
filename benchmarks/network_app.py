"""Two operators in a row that pass on a binary column, for `spark_network.py`.

A record says how long it is worked on, so that one start serves for every measurement.
"""

import time

import sojourn as sj

_RECORD = "number long, work_s double, photo binary"

app = sj.App("network")
roots = app.source("roots", schema=_RECORD)


@app.operator(reads=roots, emits=_RECORD, service_s=0.01, service_scv=0)
def first(number, work_s, photo):
    """Work, and pass all of it on."""
    time.sleep(work_s)
    yield number, work_s, photo


@app.operator(reads=first, emits="number long", service_s=0.01, service_scv=0)
def second(number, work_s, _photo):
    """Work, and let the number go."""
    time.sleep(work_s)
    yield (number,)


app.sink(second)

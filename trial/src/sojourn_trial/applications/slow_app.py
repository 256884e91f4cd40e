"""One operator whose records take longer than two batches of 5 s."""

import time

import sojourn as sj

SERVICE_S = 12.0

app = sj.App("slow")
source = app.source("source", schema="number long")


@app.operator(reads=source, emits="number long", service_s=SERVICE_S, sends=1)
def slow(number):
    """Take `SERVICE_S`."""
    time.sleep(SERVICE_S)
    yield (number,)


app.sink(slow)

"""One operator that waits a while, and says which processor it was and when it began."""

import os
import time

import sojourn as sj

SERVICE_S = 0.02

app = sj.App("rescale")
source = app.source("source", schema="seed long")


@app.operator(reads=source, emits="seed long, pid int, began double")
def work(seed):
    """Wait, and pass on who did."""
    began_s = time.time()
    time.sleep(SERVICE_S)
    yield seed, os.getpid(), began_s


app.sink(work)

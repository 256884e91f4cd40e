"""`python copies.py SERVERS STATE`: an application without functions, until it is killed."""

import sys
import time
from pathlib import Path

import sojourn as sj
from sojourn.decide.plan import Plan
from sojourn.spark.driver.settings import SparkSettings
from sojourn.spark.driver.spark_engine import SparkEngine

app = sj.App("copies")
numbers = app.source("numbers", schema="number int")
copy = app.project("copy", reads=numbers, columns={"number": "number"}, service_s=0.001)
app.sink(copy)
ALLOCATION = {"copy": 1}


def engine(servers, state, progress=lambda _line: None):
    """Return the engine, which begins with what comes from now on."""
    settings = SparkSettings(servers=servers, state=Path(state), batch_s=5, starting="latest")
    return SparkEngine(app, "copies:app", settings, progress)


if __name__ == "__main__":
    with engine(*sys.argv[1:]) as running:
        running.start(app.topology({"numbers": 1}), Plan.here(ALLOCATION))
        sys.stdout.write("started\n")
        sys.stdout.flush()
        while True:
            time.sleep(1)

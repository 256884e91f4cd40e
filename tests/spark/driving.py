"""`python driving.py ADDRESS SERVERS STATE NAME=PROCESSORS…`: an engine, until it is killed."""

import sys
import time
from pathlib import Path

from sojourn.app.loading import load
from sojourn.spark.engine import SparkEngine
from sojourn.spark.settings import SparkSettings
from sojourn.topology_file import read_topology

if __name__ == "__main__":
    address, servers, state, *told = sys.argv[1:]
    settings = SparkSettings(servers=servers, state=Path(state), batch_s=5)
    allocation = dict(pair.split("=") for pair in told)
    with SparkEngine(load(address), address, settings) as engine:
        engine.start(
            read_topology(Path(address)), {name: int(k) for name, k in allocation.items()}
        )
        sys.stdout.write("started\n")
        sys.stdout.flush()
        while True:
            time.sleep(1)

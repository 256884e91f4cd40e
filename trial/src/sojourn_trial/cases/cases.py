"""What must hold in three hard cases, with real kills and a broker of its own each.

    python benchmarks/spark_cases.py [--only open|idle|fan-out]

- open: roots of which a record takes 35 s, seven batches. The driver and then the host are
  killed (`kill -9`) while such roots are open. Nothing is lost, and nothing is twice at the
  deduplicated sink.
- idle: two sources with four partitions each, one of which gets nothing. Records of the other
  have the latency that they have when both flow, batches are committed in time, and a record
  that comes to the quiet source after many batches arrives at once.
- fan-out: roots that make 100,000 records each. All arrive once, and the memory of the host
  stays bounded. A root that would make more than a million is a dead letter.

The exit status is 1 if any of that does not hold. All three take about eight minutes.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from sojourn_trial.cases.fan_out_case import fan_out
from sojourn_trial.cases.idle_case import idle
from sojourn_trial.cases.open_case import open_roots

CASES = {"open": open_roots, "idle": idle, "fan-out": fan_out}


def main():
    """Run, print, and fail if something does not hold."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=CASES, action="append", help="this case")
    asked = parser.parse_args()
    broken = 0
    for name in asked.only or CASES:
        with tempfile.TemporaryDirectory(prefix="cases-") as folder:
            found = CASES[name](Path(folder))
        print(name)
        for figure in found.figures:
            print(f"  {figure}")
        for rule in found.broken:
            print(f"  does not hold: {rule}")
        sys.stdout.flush()
        broken += len(found.broken)
    return int(bool(broken))

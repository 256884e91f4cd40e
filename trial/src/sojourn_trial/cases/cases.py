"""Three hard cases on Spark: long-lived roots, an idle source, large fan-outs.

    python benchmarks/spark_cases.py [--only open|idle|fan-out]

Each case has its own broker.

- open: roots with a record that takes 35 s, seven batches. The driver and then the host are
  killed (`kill -9`) while such roots are open. Nothing is lost, and the deduplicated sink has
  no duplicates.
- idle: two sources with four partitions each, one of which gets no records. Records of the
  other have the same latency as when both get records, batches are committed in time, and a
  record of the idle source after many batches arrives without delay.
- fan-out: roots that produce 100,000 records each. All arrive once, and the memory of the
  host stays bounded. A root that would produce more than a million becomes a dead letter.

The exit status is 1 if a rule does not hold. All three cases take about eight minutes.
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
    """Run the cases, and return 1 if a rule does not hold."""
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

"""Whatever is killed, whenever: results are compared with what plain Python makes of the input.

    python benchmarks/spark_kills.py [--seed 1] [--kills 16] [--within 240] [--short]

Three operators with two loops, one in the other, and keys; a record in a hundred takes longer
than a batch of 5 s. From the seed it is drawn when a processor, a template, a host, a Python
worker or the daemon of Spark, Java, the driver or the broker is killed (`kill -9`). Roots are
sent all the while. At a plain sink nothing may be missing and nothing unheard of; at the one
that leaves out twins each result must be there exactly once.
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

import nested_app
from kills import TARGETS, drawn
from ledger import compare
from trial import Trial, say

ALLOCATION = {"enter": 2, "work": 8, "judge": 2}
PER_S = 8.0


def trial_in(folder, *, jars=None):
    """Return the application with its broker, in *folder*."""
    return Trial(folder, "nested_app:app", allocation=ALLOCATION, jars=jars)


def sending(trial, roots):
    """Return the thread that sends so many roots."""
    payloads = [
        json.dumps({"number": number, "key": nested_app.key_of(number)})
        for number in range(roots)
    ]
    return trial.sending("roots", payloads, PER_S)


def kill(trial, kills):
    """Kill what is drawn, when it is drawn; what takes long to come back delays the others."""
    began_s = time.monotonic()
    for each in kills:
        time.sleep(max(0.0, began_s + each.at_s - time.monotonic()))
        say(f"{time.monotonic() - began_s:.0f} s: {each.target} is killed")
        trial.kill(each.target, each.pick)


def settled(trial):
    """Return the outcomes once nothing is missing, or never will be there."""
    trial.settle(lambda: not any(outcome.lost for outcome in outcomes(trial).values()))
    return outcomes(trial)


def outcomes(trial):
    """Return how what is at each sink differs from what the input comes to."""
    entered = [_row(payload) for payload in trial.written("roots")]
    results = [result for number, _ in entered for result in nested_app.results(number)]
    stamped = compare(entered, map(_row, trial.written("stamped")), key=lambda row: row[1])
    return {
        "stamped": stamped,
        "done": compare(results, map(_row, trial.written("done"))),
        "done-once": compare(results, map(_row, trial.written("done-once"))),
    }


def _row(payload):
    return tuple(json.loads(payload).values())


def broken(found):
    """Return the sinks that do not hold what they must."""
    return [
        name
        for name, outcome in found.items()
        if outcome.lost or outcome.wrong or (name == "done-once" and not outcome.exact)
    ]


def main():
    """Run, print, and fail if a sink does not hold what it must."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kills", type=int, default=16)
    parser.add_argument("--within", type=float, default=240.0, help="seconds")
    parser.add_argument("--target", action="append", choices=TARGETS, help="only these")
    parser.add_argument("--short", action="store_true", help="four kills, to see that it runs")
    asked = parser.parse_args()
    if asked.short:
        asked.kills, asked.within = 4, 30.0
    kills = drawn(
        asked.seed,
        kills=asked.kills,
        within_s=asked.within,
        targets=asked.target or TARGETS,
    )
    with (
        tempfile.TemporaryDirectory(prefix="kills-") as folder,
        trial_in(Path(folder)) as trial,
    ):
        load = sending(trial, int(PER_S * asked.within))
        kill(trial, kills)
        load.join()
        found, failure = settled(trial), trial.driver.health()["failure"]
    for name, outcome in found.items():
        print(f"{name:10} {outcome}")
    for thing in trial.left:
        print(f"left behind: {thing}")
    if failure:
        print(f"the application stopped: {failure}")
    return int(bool(broken(found) or trial.left or failure))


if __name__ == "__main__":
    sys.exit(main())

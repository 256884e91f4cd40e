"""Kills at the ends of batches, with records that take longer than two batches.

    python benchmarks/spark_commits.py [--seed 1] [--runs 20] [--short]

One operator with a service time of 12 s and 40 processors, a record per second, batches of
5 s. At the end of a batch, the host writes its open records to a cut, Spark writes the offsets,
then the commit; the next batch removes old files. The seed determines which of these files
triggers a kill (`kill -9`) of the driver, of Java or of all processes, and the delay after it.
After the last run no record may be missing, and a start after a drain must not repeat any.
"""

import argparse
import json
import tempfile
import threading
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path

from sojourn_trial.kills.ledger import Outcome, compare
from sojourn_trial.kills.schedule import moments
from sojourn_trial.kills.trial import Trial, say

OPERATOR, PROCESSORS, PER_S = "slow", 40, 1.0
BATCH_S = 5.0
# includes working off the backlog of restarts
PATIENCE_S = 900.0


@dataclass(frozen=True)
class Ended:
    """The outcomes after all kills, after a drain, and after another start."""

    killed: Outcome
    drained: Outcome
    after: Outcome
    problems: list

    @property
    def repeated(self):
        """The number of records that were repeated by the start after the drain."""
        return self.after.twice.total() - self.drained.twice.total()


def ran(folder, *, seed, runs, jars=None):
    """Run the trial in *folder*, and return its outcomes."""
    trial = Trial(
        folder,
        "sojourn_trial.applications.slow_app:app",
        allocation={OPERATOR: PROCESSORS},
        batch_s=BATCH_S,
        jars=jars,
    )
    ended, numbers = threading.Event(), count()
    with trial:
        payloads = (_payload(next(numbers)) for _ in iter(ended.is_set, True))
        sending = trial.sending("source", payloads, PER_S)
        for number, moment in enumerate(moments(seed, runs), start=1):
            name = trial.kill_at(moment, OPERATOR)
            say(
                f"run {number}: {moment.target} killed {1000 * moment.after_s:.0f} ms "
                f"after {moment.log}/{name}"
            )
        ended.set()
        sending.join()

        def outcome():
            offline = [_number(payload) for payload in trial.written("source")]
            return compare(offline, map(_number, trial.written(OPERATOR)))

        trial.settle(lambda: not outcome().lost, patience_s=PATIENCE_S)
        killed = outcome()
        say(f"after {runs} kills: {killed}")
        # so that there are open records to drain
        trial.sending("source", map(_payload, islice(numbers, 10)), 10 * PER_S).join()
        why = trial.driver.drain()
        drained = outcome()
        trial.driver.stop()
        trial.driver.start()
        trial.settle(lambda: not outcome().lost, patience_s=PATIENCE_S)
        trial.driver.drain()
        after = outcome()
    return Ended(killed, drained, after, [*([why] if why else []), *trial.left])


def _payload(number):
    return json.dumps({"number": number})


def _number(payload):
    return json.loads(payload)["number"]


def main():
    """Run, print, and return 1 if a record was lost, or repeated after a drain."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--short", action="store_true", help="three runs, to see that it works")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="commits-") as folder:
        runs = 3 if asked.short else asked.runs
        ended = ran(Path(folder), seed=asked.seed, runs=runs)
    print(f"after {runs} kills: {ended.killed}")
    print(f"after a drain and a start: {ended.after}")
    print(f"repeated by the start after the drain: {ended.repeated}")
    for problem in ended.problems:
        print(problem)
    return int(bool(ended.after.lost or ended.after.wrong or ended.repeated or ended.problems))

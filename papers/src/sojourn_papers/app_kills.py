"""The applications of the papers, of which hosts and the driver are killed: results are exact.

    python benchmarks/spark_app_kills.py [NAME…] [--seed 1] [--kills 4] [--within 40]

From the seed it is drawn when a host and when the driver is killed (`kill -9`), and which host;
the driver is restarted on its state. Samples are sent all the while, and for a few seconds
after. When nothing more comes, results are compared with those worked out offline: by the id of
their record, databases row by row. What came again, with the same id and the same value, is
counted for each stream that is in Kafka.

Word count is the exception: Spark's aggregation counts what comes again. Without repeated words
its table must be that of the lines; with them it must be the count of all words that `split`
wrote, and those the words of the lines once the repeated are left out.

Of an application that keeps states those are compared, as Spark committed them last. What its
sinks tell of tables is compared too, unless a batch was repeated: records then come to a key in
another order, and what was written before it may have changes that are not made again. Traffic
has the same rows in the end in any order, so these are compared whatever was killed.
"""

import argparse
import json
import tempfile
import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from sojourn.spark.driver.load.offered_load import messages
from sojourn_papers.apps.catalogue import CATALOGUE, entry
from sojourn_papers.apps.check import Verdict, comparison, read_stream, writes_to
from sojourn_trial.kills.random_kills import kill
from sojourn_trial.kills.schedule import REPEATING, TARGETS, drawn
from sojourn_trial.kills.trial import Trial, say

KILLED = ("host", "driver")
# Frames take a tenth of a second of computing each.
PER_S = {"vld": 1.5, "vld-bulk": 1.0, "urls": 15.0}
USUAL_PER_S = 30.0
WORDS = {"wordcount": "split"}
"""Applications with an aggregation, and the stream that it reads."""
ANY_ORDER = ("traffic",)
"""Applications whose sinks tell the same in the end, in whatever order records come."""
_AFTER_S = 3.0
# Nothing more comes when nothing has come for so long.
_QUIET_S = 4.0
_PATIENCE_S = 300.0


@dataclass(frozen=True)
class Ended:
    """What became of the records: *again* is how many each stream has more than once.

    *left* is what the killed driver left behind, *failure* why the application stopped.
    """

    verdict: Verdict
    again: dict
    kills: list
    left: list
    failure: str

    @property
    def exact(self):
        """Whether all is as it should be."""
        return self.verdict.exact and not self.left and not self.failure

    def __str__(self):
        killed = ", ".join(f"{each.target} at {each.at_s:.0f} s" for each in self.kills)
        again = ", ".join(f"{name} {n}" for name, n in self.again.items() if n) or "none"
        lines = [f"{self.verdict}; killed: {killed}; repeated by stream: {again}"]
        lines += [f"left behind: {thing}" for thing in self.left]
        return "\n".join(lines + [f"it stopped: {self.failure}"] * bool(self.failure))


def ran(folder, name, kills, *, seed=1, database="", jars=None):
    """Return what became of the samples of *seed*, sent while *kills* happened."""
    made = entry(name)
    app, ended = made.app, threading.Event()
    per_s = PER_S.get(name, USUAL_PER_S) / len(app.samples)
    database = database or str(folder / "database.sqlite")
    allocation = {name: operator.min_processors for name, operator in app.operators.items()}
    with ExitStack() as stack:
        stack.enter_context(writes_to(database))
        trial = Trial(folder, made.address, allocation=allocation, jars=jars)
        stack.enter_context(trial)
        stack.callback(ended.set)
        sending = []
        for source in app.samples:
            samples = messages(f"{made.address} {source}", seed)
            sending.append(trial.sending(source, _until(ended, samples), per_s))
        kill(trial, kills)
        time.sleep(_AFTER_S)
        ended.set()
        for thread in sending:
            thread.join()
        results = Results(made, trial, database)
        trial.settle(results.complete, patience_s=_PATIENCE_S)
        failure = trial.driver.health()["failure"] or trial.driver.drain()
        return Ended(*results.look(), kills, trial.left, failure)


def _until(ended, samples):
    for sample in samples:
        if ended.is_set():
            return
        yield sample


class Results:
    """The results of an application, and how they differ from those worked out offline."""

    def __init__(self, made, trial, database):
        self._made, self._trial, self._database = made, trial, database
        self._clients = {"bootstrap.servers": trial.servers}
        self._compare = comparison(made, database)
        self._seen, self._since_s = None, time.monotonic()

    def complete(self):
        """Return whether all results are there, and nothing has come for a while."""
        seen = self.look()
        if seen != self._seen:
            self._seen, self._since_s = seen, time.monotonic()
        return seen[0].exact and time.monotonic() > self._since_s + _QUIET_S

    def look(self):
        """Return how the results of now differ, and how many records each stream repeats."""
        app = self._made.app
        written = [name for name in self._trial.layout.streams if name not in app.sources]
        streams = {name: self._read(name) for name in written}
        again = {
            name: len(records) - len({each.identity for each in records})
            for name, records in streams.items()
        }
        verdict = self._compare(self._clients)
        counted = WORDS.get(self._made.name)
        if counted is not None and again[counted]:
            verdict = replace(verdict, tables=self._miscounted(streams[counted]))
        return self._with_states(verdict), again

    def _with_states(self, verdict):
        """Return the verdict with states in place of what sinks tell, if that may differ."""
        if self._made.states is None:
            return verdict
        sources = {source: self._read(source) for source in self._made.app.sources}
        due = self._made.states(
            (source, each.record) for source, sent in sources.items() for each in sent
        )
        wrong = tuple(
            f"of states of {operator}"
            for operator, states in due.items()
            if self._states(operator) != states
        )
        states = sum(map(len, due.values()))
        repeated = any(target in REPEATING for _, target in self._trial.killed)
        if repeated and self._made.name not in ANY_ORDER:
            return replace(verdict, rows=states, tables=wrong)
        return replace(verdict, rows=verdict.rows + states, tables=verdict.tables + wrong)

    def _states(self, operator):
        found = self._trial.states(operator)
        return {tuple(json.loads(key)): state for key, state in found.items()}

    def _miscounted(self, words):
        """Return what is wrong with the counts of *words*, some of which came again."""
        once = {word.identity: word for word in words}.values()
        lines = [line for source in self._made.app.sources for line in self._read(source)]
        right = {
            "of words without those repeated": self._rows(once) == self._rows(lines),
            "of words": self._made.stored(self._database) == self._rows(words),
        }
        return tuple(name for name, is_right in right.items() if not is_right)

    def _read(self, stream):
        return read_stream(self._clients, self._made.app, stream)

    def _rows(self, records):
        return self._made.rows((each.root, each.record) for each in records)


def main():
    """Run, print, and fail if results are not what they should be."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="see `sojourn apps`")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kills", type=int, default=4)
    parser.add_argument("--within", type=float, default=40.0, help="seconds")
    parser.add_argument("--target", action="append", choices=TARGETS, help="only these")
    parser.add_argument("--database", default="", help="postgresql://… (default: SQLite)")
    asked = parser.parse_args()
    targets = asked.target or KILLED
    kills = drawn(asked.seed, kills=asked.kills, within_s=asked.within, targets=targets)
    exact = True
    for name in asked.names or CATALOGUE:
        say(name)
        with tempfile.TemporaryDirectory(prefix="kills-") as folder:
            ended = ran(
                Path(folder),
                name,
                kills,
                seed=asked.seed,
                database=asked.database,
            )
        print(f"{name:14} {ended}", flush=True)
        exact = exact and ended.exact
    return int(not exact)

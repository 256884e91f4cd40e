"""Kills of a host at each step between log, answer, cut and commit.

    python benchmarks/spark_kill_points.py [--runs 50] [--first 0] [--seed 1] [--quick]
                                           [--points TEXT …] [--within 300] [--into FILE]

The application counts by key in a loop, in its second part, and some records set a reminder
(`kill_points_app`). Each run has six kills (`kill -9`) at steps drawn from the seed, one after
the other or in both parts at the same time. The process kills itself at the step
(`kill_steps`), even in the middle of a write; or it kills the driver, or all processes, and the
application is restarted. Over all runs, each step is drawn equally often. Then the sinks,
states and reminders are compared with the results that plain Python computes from the input.
They must be equal, except that a plain sink may have duplicates from batches that a kill
repeats. A result is attributed to the kills during which its root was sent.

With `--into` the counts are added to a file of figures, so that `--first 10 --runs 10`
continues `--runs 10`, and all of them are printed. After `--within` no new run starts.
"""

import argparse
import json
import os
import shutil
import tempfile
import time
from bisect import bisect
from collections import Counter
from contextlib import suppress
from math import inf
from pathlib import Path
from threading import Event

import psutil

from sojourn_trial.applications import kill_points_app
from sojourn_trial.kills import kill_steps
from sojourn_trial.kills.kill_points import POINTS, drawn, rounds
from sojourn_trial.kills.random_kills import broken, most_twice, settled, trial_in, wrong_states
from sojourn_trial.kills.trial import say

PER_S = 20.0
_HERE = Path(__file__).parent
_LOOK_S = 0.02
_PATIENCE_S = 60.0
# Interval of kills that force a recovery: with a short log, it may not reach the step.
_AGAIN_S = 7.0
_COLUMNS = {
    "kills": "kills",
    "results": "results",
    "lost": "lost",
    "wrong": "wrong",
    "twice": "twice, plain sink",
    "twice_once": "twice, deduplicated",
    "reminders": "reminders",
    "reminders_off": "not once",
}


class Session:
    """An application over several runs, one after the other."""

    def __init__(self, trial, orders):
        self._trial, self._orders = trial, orders
        self.sent = 0
        self.windows = [(0, ())]  # first root of each, and the points of its kills

    def run(self, kills):
        """Send roots during the kills; return outcomes and wrong states once it has settled."""
        ended = Event()
        load = self._trial.sending("roots", self._roots(ended), PER_S)
        for together in rounds(kills):
            self._round(together)
        ended.set()
        load.join()
        self.windows.append((self.sent, ()))
        return settled(self._trial), wrong_states(self._trial)

    def _roots(self, ended):
        while not ended.is_set():
            number = self.sent
            self.sent += 1
            yield json.dumps({"number": number, "key": kill_points_app.key_of(number)})

    def _round(self, together):
        trial, whom = self._trial, together[0].order.whom
        points = tuple(kill.point for kill in together)
        self.windows.append((self.sent, points))
        say(f"  root {self.sent}: " + "; ".join(f"{k.point} ({k.part})" for k in together))
        parts = {kill.part: trial.layout.part_of[kill.part].name for kill in together}
        family = trial.driver.family()
        for kill in together:
            kill.order.give(self._orders, parts[kill.part])
        until_s, again_s = time.monotonic() + _PATIENCE_S, time.monotonic()
        while still := [k for k in together if kill_steps.is_open(self._orders, parts[k.part])]:
            if time.monotonic() > until_s:
                raise SystemExit(f"nobody came to {points}: see {trial.driver.log}")
            if time.monotonic() > again_s:
                again_s += _AGAIN_S
                self._let_recover([k.part for k in still if POINTS[k.point].recovers])
            if whom != "host":  # processes that started meanwhile belong to it as well
                family = list({*family, *trial.driver.family()})
            time.sleep(_LOOK_S)
        trial.killed.append((time.time(), "host" if whom == "host" else "driver"))
        if whom != "host":  # the application restarts a host itself
            trial.start_again(family, whom)

    def _let_recover(self, parts):
        """Kill the hosts of *parts*: only a restarted host reaches a step of a recovery."""
        for part in parts:
            self._trial.killed.append((time.time(), "host"))
            for host in self._trial.driver.victims("host", part):
                with suppress(psutil.NoSuchProcess):
                    host.kill()

    def counted(self, found):
        """Return the figures of each point, computed from the outcomes *found* at the sinks."""
        firsts = [first for first, _ in self.windows]
        figures = {name: Counter() for name in POINTS}
        for _, points in self.windows:
            for name in points:
                figures[name]["kills"] += 1
        entered = [(number, None) for number in range(self.sent)]
        for column, row, times in _rows(kill_points_app.expected(entered), found):
            # a row counts for the kills of the window in which its root was sent
            for name in self.windows[bisect(firsts, _number(row)) - 1][1]:
                figures[name][column] += times
        return figures


def _rows(due, found):
    """Yield column, row and count for each row that belongs to a single root."""
    plain, once, reminded = (
        found[name] for name in ("counted", "counted-once", "reminded-once")
    )
    columns = {
        "results": [Counter(due["counted-once"])],
        "lost": [plain.lost, once.lost],
        "wrong": [plain.wrong, once.wrong],
        "twice": [plain.twice],
        "twice_once": [once.twice],
        "reminders": [Counter(due["reminded-once"])],
        "reminders_off": [reminded.lost, reminded.twice, reminded.wrong],
    }
    for column, counters in columns.items():
        for counter in counters:
            for row, times in counter.items():
                yield column, row, times


def _number(row):
    """Return the number of the root of a row.

    >>> _number((7, "k1", 0)), _number(("k1", "7/0"))
    (7, 7)
    """
    return row[0] if isinstance(row[0], int) else int(row[1].partition("/")[0])


def _add(path, figures):
    """Add *figures* to the file at *path*, and return the sums."""
    known = json.loads(path.read_text()) if path.exists() else {}
    total = {
        name: dict(Counter(known.get(name, {})) + Counter(counted))
        for name, counted in figures.items()
    }
    path.write_text(json.dumps(total, indent=1))
    return total


def _print(figures):
    points = {name: counted for name, counted in figures.items() if name in POINTS}
    print(f"| {'step':52} | " + " | ".join(_COLUMNS.values()) + " |")
    for name, counted in points.items():
        if counted.get("kills"):
            print(f"| {name:52} | {_cells(counted)} |")
    total = sum((Counter(counted) for counted in points.values()), Counter())
    print(f"| {'kills of all':52} | {_cells(total)} |")
    print(" ".join(f"{name}: {number}" for name, number in figures["all"].items()))


def _cells(counted):
    return " | ".join(f"{counted.get(name, 0):>{len(head)}}" for name, head in _COLUMNS.items())


def _ran(asked, folder):
    """Run a session, and return its figures and faults."""
    orders = folder / "orders"
    orders.mkdir()
    os.environ[kill_steps.FOLDER] = str(orders)
    os.environ["PYTHONPATH"] = os.pathsep.join(
        filter(None, (str(_HERE / "at_start"), os.environ.get("PYTHONPATH")))
    )
    began_s, faults, everything = time.monotonic(), [], Counter()
    with trial_in(folder, app="points") as trial:
        session = Session(trial, orders)
        for run in range(asked.first, asked.first + asked.runs):
            say(f"{time.monotonic() - began_s:.0f} s: run {run}")
            found, wrong = session.run(drawn(asked.seed, run=run, points=asked.points))
            faults += [f"run {run}: {name} {found[name]}" for name in broken(found)]
            faults += [f"run {run}: {key} has {has}" for key, has in wrong.items()]
            everything["runs"] += 1
            everything["wrong states"] += len(wrong)
            if faults or time.monotonic() - began_s > asked.within:
                break
        most, failure = most_twice(trial), trial.driver.health()["failure"]
        everything["states"] += len(trial.states("count"))
    everything["roots"] = session.sent
    everything["totals"] = found["totals-once"].expected
    everything["totals off"] = sum(
        getattr(found["totals-once"], name).total() for name in ("lost", "twice", "wrong")
    )
    everything["rows at all sinks"] = sum(outcome.expected for outcome in found.values())
    faults += [
        f"{name}: {found[name].twice.total()} twice, more than the {number} that may be"
        for name, number in most.items()
        if found[name].twice.total() > number
    ]
    faults += [f"left behind: {thing}" for thing in trial.left]
    faults += [f"the application stopped: {failure}"] if failure else []
    say(f"{time.monotonic() - began_s:.0f} s: {session.sent} roots")
    return {"all": everything, **session.counted(found)}, faults


def main():
    """Run, print the figures and faults, and return 1 if there are faults."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--first", type=int, default=0, help="the number of the first run")
    parser.add_argument("--within", type=float, default=inf, help="seconds: no run after that")
    parser.add_argument("--quick", action="store_true", help="one run")
    parser.add_argument("--points", nargs="+", metavar="TEXT", help="only steps with this")
    parser.add_argument("--into", type=Path, help="a file to which figures are added")
    asked = parser.parse_args()
    if asked.quick:
        asked.runs = 1
    if asked.points:
        asked.points = [name for name in POINTS if any(text in name for text in asked.points)]
        if not asked.points:
            parser.error(f"no step has any of these; steps are {', '.join(POINTS)}")
    folder = Path(tempfile.mkdtemp(prefix="points-"))
    figures, faults = _ran(asked, folder)
    if faults:
        print(f"what it left is in {folder}")
    else:
        shutil.rmtree(folder)
    _print(figures if asked.into is None else _add(asked.into, figures))
    for fault in faults:
        print(fault)
    return int(bool(faults))

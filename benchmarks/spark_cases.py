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

The exit status is 1 if any of that does not hold. All three take about six minutes.
"""

import argparse
import json
import re
import sys
import tempfile
import threading
import time
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import count, islice, pairwise
from pathlib import Path

import psutil

from ledger import compare
from on_spark import Sink, percentiles_ms
from sojourn.errors import SojournError
from sojourn.host.batch.cut import CutId
from sojourn.host.batch.cut_store import CutFiles
from trial import Trial, say

BATCH_S = 5.0
_PATIENCE_S = 300.0
_LOOK_S = 0.2

OPEN_ROOTS, OPEN_PER_S = 75, 1.5
# A root must have been in so many cuts when something is killed, and in more in the end.
OPEN_BEFORE, OPEN_BATCHES = 2, 5

IDLE_PARTITIONS, IDLE_PER_S = 4, 40.0
IDLE_WARM_S, IDLE_S, IDLE_QUIET = 15.0, 40.0, 5
# Not a divisor of the length of a batch, so that records come at different moments of one.
IDLE_EVERY_S = 3.7
# At the end of a batch nothing comes for most of a second.
IDLE_LATEST_S = 3.0

WIDE, WIDE_ROOTS, TOO_WIDE = 100_000, 3, 1_000_001
NARROW, NARROW_ROOTS = 10, 20
FAN_OUT_MOST_MB = 1000.0


@dataclass(frozen=True)
class Found:
    """What a case has shown: *figures* to print, and what of it is *broken*."""

    figures: list
    broken: list


def held(figures, rules):
    """Return the figures with those of the *rules*, by what they say, that do not hold."""
    return Found(figures, [text for text, holds in rules.items() if not holds])


def _rows(payloads):
    return [tuple(json.loads(payload).values()) for payload in payloads]


# -- roots that are open for many batches ------------------------------------------------------


class OpenRoots:
    """Looks at the cuts of a part as they come: which roots were open, at which batches."""

    def __init__(self, folder):
        self._files, self._folder = CutFiles(folder), folder / "cuts"
        self._seen, self._batches, self._last = set(), {}, frozenset()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self):
        while not self._ended.wait(_LOOK_S):
            for name in sorted(path.name for path in self._folder.glob("*-*")):
                if name not in self._seen and re.fullmatch(r"\d+-\d+", name):
                    with suppress(SojournError):  # it is not needed any more, and gone
                        self._noted(name)

    def _noted(self, name):
        cut = self._files.load(CutId(*map(int, name.split("-"))))
        self._seen.add(name)
        self._last = frozenset(record.root for record in cut.open)
        for root in self._last:
            self._batches.setdefault(root, set()).add(cut.id.batch)

    def open_for(self, batches):
        """Return the roots that are open, and were at the ends of so many batches."""
        return [root for root in self._last if len(self._batches[root]) >= batches]

    @property
    def longest(self):
        """At the ends of how many batches a root was open, at most."""
        return max(map(len, self._batches.values()), default=0)

    def close(self):
        """Look no more."""
        self._ended.set()
        self._thread.join()


def open_roots(folder, *, jars=None):
    """Kill the driver and the host while roots are open for many batches."""
    trial = Trial(
        folder,
        "cases_app:open_roots",
        allocation={"halve": 1, "linger": 24},
        batch_s=BATCH_S,
        jars=jars,
    )
    open_at = {}
    with trial, closing(OpenRoots(trial.state.cuts("halve"))) as roots:
        payloads = [json.dumps({"number": number}) for number in range(OPEN_ROOTS)]
        sending = trial.sending("roots", payloads, OPEN_PER_S)
        for round_, target in enumerate(("driver", "host"), start=1):
            # of the second, also those that were open at the first
            trial.settle(lambda n=round_: len(roots.open_for(n * OPEN_BEFORE)) > 1)
            open_at[target] = len(roots.open_for(round_ * OPEN_BEFORE))
            time.sleep(BATCH_S / 2)  # results since the last commit will come again
            say(f"{target} is killed: {open_at[target]} roots are open")
            trial.kill(target)
        sending.join()

        def outcome(sink):
            offline = [(n, half) for n in range(OPEN_ROOTS) for half in range(2)]
            return compare(offline, _rows(trial.written(sink)))

        sinks = "linger", "linger-once"
        trial.settle(lambda: not any(outcome(sink).lost for sink in sinks))
        time.sleep(2 * BATCH_S)  # for what comes again
        plain, once = map(outcome, sinks)
        failure, longest = trial.driver.health()["failure"], roots.longest
    return held(
        [
            f"plain sink: {plain}",
            f"deduplicated sink: {once}",
            f"roots open when killed: {open_at}",
            f"a root was open at the ends of up to {longest} batches",
        ],
        {
            "nothing is lost or wrong at the plain sink": not plain.lost + plain.wrong,
            "all is there exactly once at the deduplicated sink": once.exact,
            "roots were open at both kills": all(open_at.values()),
            f"roots were open for more than {OPEN_BATCHES} batches": longest > OPEN_BATCHES,
            "nothing is left behind": not trial.left,
            f"it did not stop: {failure}": not failure,
        },
    )


# -- a source that gets nothing ----------------------------------------------------------------


def idle(folder, *, jars=None):
    """Let one of two sources be quiet, then bring something now and then, then as much."""
    trial = Trial(
        folder,
        "cases_app:idle",
        allocation={"merge": 1, "pass_on": 1},
        batch_s=BATCH_S,
        partitions=IDLE_PARTITIONS,
        jars=jars,
    )
    numbers, ended = count(), threading.Event()

    def payloads():
        for number in numbers:
            if ended.is_set():
                return
            yield json.dumps({"number": number})

    with trial, closing(Sink(trial.servers, [trial.app.topic("pass_on")])) as sink:
        sending = [trial.sending("busy", payloads(), IDLE_PER_S)]
        time.sleep(IDLE_WARM_S)
        say("one source gets nothing")
        alone = time.time(), time.time() + IDLE_S
        time.sleep(IDLE_S)
        commits = _committed_s(trial, "merge", *alone)
        say("it gets a record now and then")
        for payload in islice(payloads(), IDLE_QUIET):
            trial.sending("quiet", [payload], 1.0).join()
            time.sleep(IDLE_EVERY_S)
        say("it gets as many as the other")
        both = time.time(), time.time() + IDLE_S
        sending.append(trial.sending("quiet", payloads(), IDLE_PER_S))
        time.sleep(IDLE_S)
        ended.set()
        for thread in sending:
            thread.join()
        sent = [name for name in ("busy", "quiet") for _ in trial.written(name)]
        sink.await_roots(len(sent), patience_s=_PATIENCE_S)
        arrived, failure = sink.arrived, trial.driver.health()["failure"]
    outcome = compare(sent, [_source(each) for each in arrived])
    in_time = [each for each in arrived if _source(each) == "busy" and _within(each, *alone)]
    ordinary = [each for each in arrived if _within(each, *both)]
    rare = [e for e in arrived if _source(e) == "quiet" and alone[1] <= e.birth_s < both[0]]
    silence_s = _longest([*alone, *(each.read_s for each in in_time)])
    (p50, p95, p99), (p50_both, p95_both, p99_both) = (
        percentiles_ms([each.took_s for each in some]) for some in (in_time, ordinary)
    )
    latest_s, gap_s = max(each.took_s for each in rare), _longest(commits)
    return held(
        [
            str(outcome),
            f"one source quiet: p50 {p50:.0f} ms, p95 {p95:.0f} ms, p99 {p99:.0f} ms",
            f"longest silence of the other: {silence_s:.1f} s",
            f"both flow: p50 {p50_both:.0f} ms, p95 {p95_both:.0f} ms, p99 {p99_both:.0f} ms",
            f"{len(commits)} commits in {IDLE_S:g} s, at most {gap_s:.1f} s apart",
            f"{len(rare)} records for the quiet source: at most {1e3 * latest_s:.0f} ms",
        ],
        {
            "all records arrive once": outcome.exact,
            "latency is ordinary": p50 < 2 * p50_both + 50 and p99 < 2 * p99_both + 500,
            "nothing stands still": silence_s < IDLE_LATEST_S,
            "batches are committed in time": gap_s < 2 * BATCH_S,
            f"the quiet source's records take less than {IDLE_LATEST_S:g} s": (
                len(rare) == IDLE_QUIET and latest_s < IDLE_LATEST_S
            ),
            f"it did not stop: {failure}": not failure,
        },
    )


def _source(arrived):
    """Return the source of what arrived: its root is `idle.SOURCE@MARK/PARTITION/OFFSET`."""
    return re.match(r"idle\.(\w+)", arrived.root)[1]


def _within(arrived, begin_s, end_s):
    return begin_s <= arrived.birth_s < end_s


def _longest(times_s):
    """Return the longest time between two neighbours."""
    times_s = sorted(times_s)
    return max((b - a for a, b in pairwise(times_s)), default=float("inf"))


def _committed_s(trial, query, begin_s, end_s):
    """Return when batches were committed in that time."""
    files = (trial.state.checkpoint(query) / "commits").glob("[0-9]*")
    times_s = (path.stat().st_mtime for path in files)
    return sorted(at_s for at_s in times_s if begin_s <= at_s <= end_s)


# -- a root that makes many records ------------------------------------------------------------


def fan_out(folder, *, jars=None):
    """Send roots that make 100,000 records, and one that would make more than a million."""
    trial = Trial(
        folder,
        "cases_app:fan_out",
        allocation={"spread": 1, "keep": 2},
        batch_s=BATCH_S,
        jars=jars,
    )
    widths = [NARROW] * NARROW_ROOTS + [WIDE] * WIDE_ROOTS + [NARROW] * NARROW_ROOTS
    peaks_mb = {}
    with trial:
        peaks_mb["at the start"] = _peak_mb(trial)
        began_s, due, took_s = time.monotonic(), sum(widths), {}
        trial.sending("roots", _wide(widths), 20.0).join()
        for sink in ("keep", "keep-once"):
            trial.settle(lambda at=sink: trial.length(at) >= due, patience_s=_PATIENCE_S)
            took_s[sink] = time.monotonic() - began_s
            say(f"{trial.length(sink)} of {due} records at {sink} after {took_s[sink]:.0f} s")
        peaks_mb[f"after {WIDE_ROOTS} roots of {WIDE:,}"] = _peak_mb(trial)
        trial.sending("roots", _wide([TOO_WIDE, NARROW], first=len(widths)), 20.0).join()
        trial.settle(
            lambda: trial.length("keep-once") >= due + NARROW and trial.length("dead-letters"),
            patience_s=_PATIENCE_S,
        )
        peaks_mb[f"after one of {TOO_WIDE:,}"] = _peak_mb(trial)
        offline = [
            (number, place)
            for number, width in enumerate([*widths, 0, NARROW])
            for place in range(width)
        ]
        plain, once = (
            compare(offline, _rows(trial.written(sink))) for sink in ("keep", "keep-once")
        )
        letters = _rows(trial.written("dead-letters"))
        health = trial.driver.health()
    most_mb = max(peaks_mb.values())
    shown = ", ".join(f"{mb:.0f} MB {when}" for when, mb in peaks_mb.items())
    return held(
        [
            f"plain sink: {plain}; {due / took_s['keep']:.0f} per s",
            f"deduplicated sink: {once}; {due / took_s['keep-once']:.0f} per s",
            f"peak memory of the host: {shown}",
            f"dead letters: {letters}",
        ],
        {
            "all arrive exactly once": plain.exact and once.exact,
            f"the host takes less than {FAN_OUT_MOST_MB:g} MB": most_mb < FAN_OUT_MOST_MB,
            "the root that makes too many is a dead letter": (
                letters == [(len(widths), TOO_WIDE)]
            ),
            f"nothing was restarted: {health['restarts']}": not any(
                health["restarts"].values()
            ),
            f"it did not stop: {health['failure']}": not health["failure"],
        },
    )


def _wide(widths, first=0):
    return [
        json.dumps({"number": number, "width": width})
        for number, width in enumerate(widths, start=first)
    ]


def _peak_mb(trial):
    """Return the most memory that a host had since it began, in MB."""
    peaks_kb = [0]
    for host in trial.driver.victims("host"):
        with suppress(OSError, psutil.Error):
            status = Path(f"/proc/{host.pid}/status").read_text()
            peaks_kb.append(int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]))
    return max(peaks_kb) / 1e3


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


if __name__ == "__main__":
    sys.exit(main())

"""Two sources, one of which is idle, then gets a few records, then as many as the other."""

import json
import re
import threading
import time
from contextlib import closing
from itertools import count, islice, pairwise

from sojourn_trial.cases.case import BATCH_S, PATIENCE_S, held, rows
from sojourn_trial.cases.sink import Sink, percentiles_ms
from sojourn_trial.kills.ledger import compare
from sojourn_trial.kills.trial import Trial, say

PARTITIONS, PER_S = 4, 40.0
WARM_S, LASTS_S, QUIET = 15.0, 40.0, 5
# Not a divisor of the batch interval, so that records arrive at different times of a batch.
EVERY_S = 3.7
# The end of a batch delays results by most of a second.
LATEST_S = 3.0


def idle(folder, *, jars=None):
    """Send no records to one of two sources, then a few, then as many as to the other."""
    trial = Trial(
        folder,
        "sojourn_trial.applications.cases_app:idle",
        allocation={"merge": 1, "pass_on": 1},
        batch_s=BATCH_S,
        partitions=PARTITIONS,
        jars=jars,
    )
    numbers, ended = count(), threading.Event()

    def payloads():
        for number in numbers:
            if ended.is_set():
                return
            yield json.dumps({"number": number})

    with trial, closing(Sink(trial.servers, [trial.app.topic("pass_on")])) as sink:
        sending = [trial.sending("busy", payloads(), PER_S)]
        time.sleep(WARM_S)
        say("one source gets nothing")
        alone = time.time(), time.time() + LASTS_S
        time.sleep(LASTS_S)
        commits = _committed_s(trial, "merge", *alone)
        say("it gets a record now and then")
        for payload in islice(payloads(), QUIET):
            trial.sending("quiet", [payload], 1.0).join()
            time.sleep(EVERY_S)
        say("it gets as many as the other")
        both = time.time(), time.time() + LASTS_S
        sending.append(trial.sending("quiet", payloads(), PER_S))
        time.sleep(LASTS_S)
        ended.set()
        for thread in sending:
            thread.join()
        sent = [
            (source, number)
            for source in ("busy", "quiet")
            for (number,) in rows(trial.written(source))
        ]
        sink.await_roots(len(sent), patience_s=PATIENCE_S)
        outcome = compare(sent, rows(trial.written("pass_on")))
        arrived, failure = sink.arrived, trial.driver.health()["failure"]
    in_time = [each for each in arrived if _source(each) == "busy" and _within(each, *alone)]
    ordinary = [each for each in arrived if _within(each, *both)]
    # the first ones in order, not by a time limit: Kafka truncates timestamps to milliseconds
    quiet = [each for each in arrived if _source(each) == "quiet"]
    rare = sorted(quiet, key=lambda each: each.birth_s)[:QUIET]
    silence_s = _longest([*alone, *(each.read_s for each in in_time)])
    (p50, p95, p99), (p50_both, p95_both, p99_both) = (
        percentiles_ms([each.took_s for each in some]) for some in (in_time, ordinary)
    )
    latest_s, gap_s = (
        max((each.took_s for each in rare), default=float("inf")),
        _longest(commits),
    )
    return held(
        [
            str(outcome),
            f"one source quiet: p50 {p50:.0f} ms, p95 {p95:.0f} ms, p99 {p99:.0f} ms",
            f"longest silence of the other: {silence_s:.1f} s",
            f"both flow: p50 {p50_both:.0f} ms, p95 {p95_both:.0f} ms, p99 {p99_both:.0f} ms",
            f"{len(commits)} commits in {LASTS_S:g} s, at most {gap_s:.1f} s apart",
            f"{len(rare)} records for the quiet source: at most {1e3 * latest_s:.0f} ms",
        ],
        {
            "all records arrive once": outcome.exact,
            "latency is ordinary": p50 < 2 * p50_both + 50 and p99 < 2 * p99_both + 500,
            "nothing stands still": silence_s < LATEST_S,
            "batches are committed in time": gap_s < 2 * BATCH_S,
            f"the quiet source's records take less than {LATEST_S:g} s": (
                len(rare) == QUIET and latest_s < LATEST_S
            ),
            f"it did not stop: {failure}": not failure,
        },
    )


def _source(arrived):
    """Return the source of a result, whose root is `idle.SOURCE@MARK/PARTITION/OFFSET`."""
    return re.match(r"idle\.(\w+)", arrived.root)[1]


def _within(arrived, begin_s, end_s):
    return begin_s <= arrived.birth_s < end_s


def _longest(times_s):
    """Return the longest gap between consecutive times; infinite for fewer than two."""
    times_s = sorted(times_s)
    return max((b - a for a, b in pairwise(times_s)), default=float("inf"))


def _committed_s(trial, query, begin_s, end_s):
    """Return the times of the commits of *query* in an interval."""
    files = (trial.state.checkpoint(query) / "commits").glob("[0-9]*")
    times_s = (path.stat().st_mtime for path in files)
    return sorted(at_s for at_s in times_s if begin_s <= at_s <= end_s)

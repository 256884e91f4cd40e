"""Roots that produce 100,000 records each, and one that would produce over a million."""

import json
import re
import time
from contextlib import suppress
from pathlib import Path

import psutil

from sojourn_trial.cases.case import BATCH_S, PATIENCE_S, held, rows
from sojourn_trial.kills.ledger import compare
from sojourn_trial.kills.trial import Trial, say

WIDE, WIDE_ROOTS, TOO_WIDE = 100_000, 3, 1_000_001
NARROW, NARROW_ROOTS = 10, 20
MOST_MB = 1000.0


def fan_out(folder, *, jars=None):
    """Send roots with a fan-out of 100,000, and one with more than a million."""
    trial = Trial(
        folder,
        "sojourn_trial.applications.cases_app:fan_out",
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
            trial.settle(lambda at=sink: trial.length(at) >= due, patience_s=PATIENCE_S)
            took_s[sink] = time.monotonic() - began_s
            say(f"{trial.length(sink)} of {due} records at {sink} after {took_s[sink]:.0f} s")
        peaks_mb[f"after {WIDE_ROOTS} roots of {WIDE:,}"] = _peak_mb(trial)
        trial.sending("roots", _wide([TOO_WIDE, NARROW], first=len(widths)), 20.0).join()
        trial.settle(
            lambda: trial.length("keep-once") >= due + NARROW and trial.length("dead-letters"),
            patience_s=PATIENCE_S,
        )
        peaks_mb[f"after one of {TOO_WIDE:,}"] = _peak_mb(trial)
        offline = [
            (number, place)
            for number, width in enumerate([*widths, 0, NARROW])
            for place in range(width)
        ]
        plain, once = (
            compare(offline, rows(trial.written(sink))) for sink in ("keep", "keep-once")
        )
        letters = rows(trial.written("dead-letters"))
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
            f"the host takes less than {MOST_MB:g} MB": most_mb < MOST_MB,
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
    """Return the peak memory of the largest host since its start, in MB."""
    peaks_kb = [0]
    for host in trial.driver.victims("host"):
        with suppress(OSError, psutil.Error):
            status = Path(f"/proc/{host.pid}/status").read_text()
            peaks_kb.append(int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]))
    return max(peaks_kb) / 1e3

"""Roots that stay open for many batches, while the driver and the host are killed."""

import json
import re
import threading
import time
from contextlib import closing, suppress

from sojourn.errors import SojournError
from sojourn.spark.host.batch.cut import CutId
from sojourn.spark.host.batch.cut_store import CutFiles
from sojourn_trial.cases.case import BATCH_S, held, rows
from sojourn_trial.kills.ledger import compare
from sojourn_trial.kills.trial import Trial, say

ROOTS, PER_S = 75, 1.5
# Cuts in which a root must have been open before each kill, and in the end.
BEFORE, BATCHES = 2, 5
_LOOK_S = 0.2


class OpenRoots:
    """Watches the cuts of a part: which roots were open at the end of which batches."""

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
                    with suppress(SojournError):  # the cut has been removed meanwhile
                        self._noted(name)

    def _noted(self, name):
        cut = self._files.load(CutId(*map(int, name.split("-"))))
        self._seen.add(name)
        self._last = frozenset(record.root for record in cut.open)
        for root in self._last:
            self._batches.setdefault(root, set()).add(cut.id.batch)

    def open_for(self, batches):
        """Return the open roots that were open at the ends of at least *batches* batches."""
        return [root for root in self._last if len(self._batches[root]) >= batches]

    @property
    def longest(self):
        """The largest number of batches at whose end a root was open."""
        return max(map(len, self._batches.values()), default=0)

    def close(self):
        """Stop watching."""
        self._ended.set()
        self._thread.join()


def open_roots(folder, *, jars=None):
    """Kill the driver and the host while roots stay open for many batches."""
    trial = Trial(
        folder,
        "sojourn_trial.applications.cases_app:open_roots",
        allocation={"halve": 1, "linger": 24},
        batch_s=BATCH_S,
        jars=jars,
    )
    open_at = {}
    with trial, closing(OpenRoots(trial.state.cuts("halve"))) as roots:
        payloads = [json.dumps({"number": number}) for number in range(ROOTS)]
        sending = trial.sending("roots", payloads, PER_S)
        for round_, target in enumerate(("driver", "host"), start=1):
            # before the second kill, some roots must have been open since before the first
            trial.settle(lambda n=round_: len(roots.open_for(n * BEFORE)) > 1)
            open_at[target] = len(roots.open_for(round_ * BEFORE))
            time.sleep(BATCH_S / 2)  # leaves uncommitted results, to be repeated
            say(f"{target} is killed: {open_at[target]} roots are open")
            trial.kill(target)
        sending.join()

        def outcome(sink):
            offline = [(n, half) for n in range(ROOTS) for half in range(2)]
            return compare(offline, rows(trial.written(sink)))

        sinks = "linger", "linger-once"
        trial.settle(lambda: not any(outcome(sink).lost for sink in sinks))
        time.sleep(2 * BATCH_S)  # for repeated results
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
            f"roots were open for more than {BATCHES} batches": longest > BATCHES,
            "nothing is left behind": not trial.left,
            f"it did not stop: {failure}": not failure,
        },
    )

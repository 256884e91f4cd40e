"""An application that counts by key in a loop, in its second part: for trials with kills.

The results depend only on the content of the records, so `expected` can compute them.
"""

import json
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import sojourn as sj
from sojourn_trial.applications.loop_app import drawn

_RECORD = "number long, key string, round int"


@dataclass(frozen=True, kw_only=True)
class Counting:
    """The settings of the application, and its operators."""

    name: str
    key_of: Callable[[int, int], str]
    """The key of a record, from the number of its root and its round."""
    again: float
    """The fraction of records that goes round the loop once more."""
    reminded: float
    """The fraction of records that sets a reminder."""
    within_s: float
    """The maximum delay of a reminder."""
    work_s: float = 0.0
    """The time of most records."""
    slow: float = 0.0
    """The fraction of records that takes *slow_s*."""
    slow_s: float = 0.0
    once: tuple[str, ...] = ("counted", "totals", "reminded")
    """Streams with a deduplicated sink."""

    def app(self):
        """Return the application."""
        app = sj.App(self.name)
        roots = app.source("roots", schema="number long, key string")
        again = app.stream("again", schema=_RECORD)
        service_s = max(self.work_s, 1e-4)
        enter = app.operator(
            reads=roots, emits=_RECORD, durable=True, sends=1.0, service_s=service_s
        )(self.enter)
        count = app.operator(
            reads=[enter.by("key"), again.by("key")],
            emits={
                "counted": _RECORD,
                "totals": "key string, n long",
                "reminded": "key string, note string",
                "again": again,
            },
            state={"n": 0, "sum": 0, "reminded": 0},
            sends={
                "counted": 1.0,
                "totals": 1.0,
                "reminded": self.reminded,
                "again": self.again,
            },
            service_s=service_s,
        )(self.count)
        app.sink(count["counted"])
        for stream in self.once:
            app.sink(count[stream], name=f"{stream}-once", deduplicate=True)
        return app

    def enter(self, number, key):
        """Pass roots on. This is a part of its own, which repeats uncommitted writes."""
        yield number, key, 0

    def count(self, state, _stream, record):
        """Count records by key, and send a fraction round the loop with another key."""
        if state.reminded is not None:
            state["reminded"] += 1
            yield "reminded", (*record, state.reminded.note)
            return
        number, key, turn = record
        if self._asks(number, turn):
            after_s = self.within_s * drawn(number, turn, "after")
            state.remind(after_s=after_s, note=f"{number}/{turn}")
        if takes_s := self.slow_s if drawn(number, turn, "slow") < self.slow else self.work_s:
            time.sleep(takes_s)
        state["n"] += 1
        state["sum"] += number
        yield "counted", (number, key, turn)
        yield "totals", (key, state["n"])
        if self._goes_on(number, turn):
            yield "again", (number, self.key_of(number, turn + 1), turn + 1)

    def expected(self, entered):
        """Return the final content of each sink, given the roots that have *entered*."""
        counted = list(self._counted(entered))
        numbers = Counter(key for _, key, _ in counted)
        streams = {
            "counted": counted,
            "totals": [(key, n) for key, most in numbers.items() for n in range(1, most + 1)],
            "reminded": [
                (key, f"{number}/{turn}")
                for number, key, turn in counted
                if self._asks(number, turn)
            ],
        }
        return {"counted": counted, **{f"{name}-once": streams[name] for name in self.once}}

    def expected_states(self, entered):
        """Return the final state of each key, by operator."""
        numbers, sums, asked = Counter(), Counter(), Counter()
        for number, key, turn in self._counted(entered):
            numbers[key] += 1
            sums[key] += number
            asked[key] += self._asks(number, turn)
        return {
            "count": {
                json.dumps([key]): {"n": n, "sum": sums[key], "reminded": asked[key]}
                for key, n in numbers.items()
            }
        }

    def _goes_on(self, number, turn):
        return drawn(number, turn, "again") < self.again

    def _asks(self, number, turn):
        return drawn(number, turn, "remind") < self.reminded

    def _counted(self, entered):
        for number, _ in entered:
            turn = 0
            yield number, self.key_of(number, turn), turn
            while self._goes_on(number, turn):
                turn += 1
                yield number, self.key_of(number, turn), turn

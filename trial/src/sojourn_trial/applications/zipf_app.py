"""`Counting` for a high rate: 10,000 keys, some far more frequent than others.

No record is slow, so that as many records as possible are in flight at each kill.
"""

from bisect import bisect
from itertools import accumulate

from sojourn_trial.applications.counting import Counting
from sojourn_trial.applications.loop_app import drawn

KEYS = 10_000
ALLOCATION = {"enter": 1, "count": 2}

_SHARES = list(accumulate(1 / rank for rank in range(1, KEYS + 1)))


def key_of(number, turn=0):
    """Return the key of a record, by Zipf's law: one in ten has the most frequent key.

    >>> from collections import Counter
    >>> Counter(key_of(number) for number in range(1000)).most_common(2)
    [('k0', 95), ('k1', 45)]
    """
    return f"k{bisect(_SHARES, drawn(number, turn, 'key') * _SHARES[-1])}"


COUNTING = Counting(
    name="zipf",
    key_of=key_of,
    again=0.1,
    reminded=0.05,
    within_s=10.0,
    once=("totals", "reminded"),
)
app = COUNTING.app()
expected, expected_states = COUNTING.expected, COUNTING.expected_states

"""`Counting` with 12 keys, and some records that take longer than a batch."""

from sojourn_trial.applications.counting import Counting
from sojourn_trial.applications.loop_app import drawn

KEYS = 12
ALLOCATION = {"enter": 2, "count": 6}


def key_of(number, turn=0):
    """Return the key of a record: half of the records have one of two keys."""
    drawn_key = drawn(number, turn, "key")
    return f"k{int(drawn_key * 4)}" if drawn_key < 0.5 else f"k{int(drawn_key * KEYS)}"


COUNTING = Counting(
    name="state",
    key_of=key_of,
    again=0.3,
    reminded=0.2,
    within_s=15.0,
    work_s=0.002,
    slow=0.01,
    slow_s=6.0,  # longer than a batch
)
app = COUNTING.app()
expected, expected_states = COUNTING.expected, COUNTING.expected_states

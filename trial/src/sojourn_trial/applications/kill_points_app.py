"""`state_app` with short reminders, for `spark_kill_points.py`."""

from dataclasses import replace

from sojourn_trial.applications import state_app

ALLOCATION = {"enter": 1, "count": 3}

COUNTING = replace(state_app.COUNTING, name="points", within_s=5.0, slow=0.005)
app, key_of = COUNTING.app(), COUNTING.key_of
expected, expected_states = COUNTING.expected, COUNTING.expected_states

"""What the loop remembers, in an SQLite file: written turn by turn, read at any time.

`HistoryFile` appends. `read` returns the `Knowledge` to go on with, `read_run` and `read_runs`
what was run, `read_episodes` every turn, few at a time. docs/guides/history.md has the tables.
"""

from sojourn.history.reader import read, read_episodes, read_run, read_runs
from sojourn.history.run import Run
from sojourn.history.writer import HistoryFile

__all__ = ["HistoryFile", "Run", "read", "read_episodes", "read_run", "read_runs"]

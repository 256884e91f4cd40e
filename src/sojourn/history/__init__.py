"""The history of the loop in an SQLite file: written turn by turn, readable at any time.

`HistoryFile` appends. `read` returns the `Knowledge` to resume with, `read_run` and `read_runs`
return runs, and `read_episodes` yields every turn. docs/guides/history.md describes the tables.
"""

from sojourn.history.format import Run
from sojourn.history.reader import read, read_episodes, read_run, read_runs
from sojourn.history.writer import HistoryFile

__all__ = ["HistoryFile", "Run", "read", "read_episodes", "read_run", "read_runs"]

import os
from contextlib import contextmanager

import pytest

from sojourn.errors import BadInput
from sojourn_papers.apps.catalogue import entry
from sojourn_papers.apps.check import Verdict, check
from sojourn_papers.apps.database import DATABASE
from sojourn_papers.apps.wordcount import open_table, store


def test_a_database_with_rows_is_refused_before_anything_starts(tmp_path, monkeypatch):
    """Its rows would be compared with those of this run."""
    address = str(tmp_path / "words.sqlite")
    monkeypatch.setenv(DATABASE, address)
    with contextmanager(open_table)() as database:
        store(database, "whale", 1)
    with pytest.raises(BadInput, match="name one that is empty"):
        check(entry("wordcount"), per_s=1, lasts_s=1, state=tmp_path, database=address)
    assert os.environ[DATABASE] == address


def test_a_verdict_says_which_tables_differ():
    found = Verdict(sent=3, expected=0, rows=7, rows_found=6, tables=("words",))
    assert not found.exact
    assert str(found).endswith(
        "0 repeated; 6 of 7 expected rows found in tables; table words differs"
    )

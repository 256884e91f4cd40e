"""Word count: the words of lines of text, counted, and the counts stored by word.

The first application of "A Predictive Scheduling Framework for Fast and Distributed Stream Data
Processing" (2015), a chain: `split` makes words of a line, `count` counts each word, `store`
writes its row. Spark itself counts, in `app.aggregate`, which reports a word each time that
its count has grown. The lines are those of a novel, or made-up words as frequent as real ones.
"""

from collections.abc import Iterator
from contextlib import closing

import sojourn as sj
from sojourn_papers.apps.database import Database, connect
from sojourn_papers.apps.wordcount.samples import samples
from sojourn_papers.apps.wordcount.table import LARGER_WINS, SCHEMA
from sojourn_papers.apps.wordcount.words import words

__all__ = ["app", "count", "open_table", "split", "store"]

app = sj.App("wordcount-db")
lines = app.source("lines", schema="line string not null", samples=samples)


@app.operator(
    reads=lines, emits="word string", on_error="dead_letter", service_s=10e-6, sends=11.0
)
def split(line: str) -> Iterator[tuple[str]]:
    """Yield the words of a line."""
    for word in words(line):
        yield (word,)


count = app.aggregate(
    "count",
    reads=split,
    by="word",
    columns={"n": "count(*)"},
    emits="word string, n bigint",
    service_s=100e-6,
)


def open_table() -> Iterator[Database]:
    """Yield a connection to the database with the counts, and close it at the end."""
    with closing(connect(app.name, SCHEMA)) as database:
        yield database


@app.operator(reads=count, set_up=open_table, on_error=sj.OnError(retries=3), service_s=40e-6)
def store(database: Database, word: str, n: int) -> None:
    """Write the count of a word. Counts only grow, so one that comes late changes nothing."""
    database.write({LARGER_WINS: [(word, n)]})

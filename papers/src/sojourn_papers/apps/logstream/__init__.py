"""Log stream processing: lines of logs, sorted by rules, indexed and counted in a database.

The second application of "A Predictive Scheduling Framework for Fast and Distributed Stream
Data Processing" (2015). `rules` parses a line and passes on what is of interest, to two
branches at once: `indexer` finds the terms of an entry, which `store_index` writes, and
`counter` says what it counts for, which `store_counts` writes. Each row has the id of its
record as its key, so a record that is processed again changes nothing. The lines are error logs
of Apache and syslogs of Linux, real or made up.
"""

from collections.abc import Iterator
from contextlib import closing

import sojourn as sj
from sojourn_papers.apps.database import Database, connect
from sojourn_papers.apps.logstream.entry import parse
from sojourn_papers.apps.logstream.rule import RULES, first_rule
from sojourn_papers.apps.logstream.samples import samples
from sojourn_papers.apps.logstream.tables import COUNT, ENTRY, SCHEMA, TERM
from sojourn_papers.apps.logstream.terms import terms

__all__ = ["app", "counter", "indexer", "open_tables", "rules", "store_counts", "store_index"]

ENTRY_COLUMNS = "time string, level string, component string, message string, rule string"
COUNT_COLUMNS = "kind string, value string, hour string"
DATABASE_AWAY = sj.OnError(retries=3)

app = sj.App("logstream")
lines = app.source("lines", schema="line string not null", samples=samples)


@app.operator(
    reads=lines, emits=ENTRY_COLUMNS, on_error="dead_letter", service_s=10e-6, sends=0.7
)
def rules(line: str) -> Iterator[tuple[str, ...]]:
    """Yield the entry of a line that is of interest, and the first rule that says so."""
    entry = parse(line)
    rule = first_rule(RULES, entry)
    if rule is not None:
        yield entry.time, entry.level, entry.component, entry.message, rule


@app.operator(reads=rules, emits=f"{ENTRY_COLUMNS}, terms array<string>", service_s=6e-6)
def indexer(
    time: str, level: str, component: str, message: str, rule: str
) -> Iterator[tuple[str | list[str], ...]]:
    """Yield an entry with the terms that it is found by."""
    yield time, level, component, message, rule, terms(message)


@app.operator(reads=rules, emits=COUNT_COLUMNS, service_s=1e-6, sends=3.0)
def counter(
    time: str, level: str, component: str, _message: str, rule: str
) -> Iterator[tuple[str, str, str]]:
    """Yield what an entry counts for: its rule, its level and its component, by hour."""
    hour = time[: len("06-09 06")]
    yield "rule", rule, hour
    yield "level", level, hour
    yield "component", component, hour


def open_tables() -> Iterator[Database]:
    """Yield a connection to the database with index and counts, and close it at the end."""
    with closing(connect(app.name, SCHEMA)) as database:
        yield database


@app.operator(
    reads=indexer,
    set_up=open_tables,
    record_id=True,
    on_error=DATABASE_AWAY,
    service_s=350e-6,
)
def store_index(database: Database, record_id: str, *indexed: str | list[str]) -> None:
    """Write an entry and its terms, unless they are there."""
    *entry, found = indexed
    database.write({ENTRY: [(record_id, *entry)], TERM: [(term, record_id) for term in found]})


@app.operator(
    reads=counter,
    set_up=open_tables,
    record_id=True,
    on_error=DATABASE_AWAY,
    service_s=60e-6,
)
def store_counts(database: Database, record_id: str, kind: str, value: str, hour: str) -> None:
    """Write a row that counts one, unless it is there."""
    database.write({COUNT: [(record_id, kind, value, hour)]})

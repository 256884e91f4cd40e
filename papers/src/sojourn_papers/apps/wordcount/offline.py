"""The word count, without Sojourn: one Counter over all lines."""

import re
from collections import Counter
from collections.abc import Iterator

from sojourn_papers.apps.catalogue import Record, Tables
from sojourn_papers.apps.database import open_database
from sojourn_papers.apps.wordcount.table import COUNTS, SCHEMA
from sojourn_papers.apps.wordcount.words import LONGEST

_BETWEEN_WORDS = re.compile(r"[^\w'\u2019]|_|['\u2019]{2,}")


def answers(_source: str, _record: Record) -> Iterator[tuple[str, Record]]:
    """Yield nothing: a count depends on all lines."""
    return iter(())


def rows(records: Iterator[tuple[str, Record]]) -> Tables:
    """Return the counts of all words of the lines.

    >>> rows(iter([("lines", ("To be, or",)), ("lines", ("not to be?",))]))["words"] == {
    ...     ("to", 2), ("be", 2), ("or", 1), ("not", 1)
    ... }
    True
    """
    counts: Counter[str] = Counter()
    for _, (line,) in records:
        for part in _BETWEEN_WORDS.split(line.lower()):
            counts[part.strip("'\u2019").replace("\u2019", "'")] += 1
    return {
        "words": frozenset((word, n) for word, n in counts.items() if 0 < len(word) <= LONGEST)
    }


def stored(url: str) -> Tables:
    """Return the counts in the database."""
    database = open_database(url, SCHEMA)
    try:
        return {"words": frozenset(database.read(COUNTS))}
    finally:
        database.close()

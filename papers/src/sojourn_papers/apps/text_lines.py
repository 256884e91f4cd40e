"""Lines of text files, as samples of a source."""

import gzip
from collections.abc import Iterator, Sequence
from itertools import cycle, islice
from pathlib import Path
from random import Random


def read_lines(path: Path) -> list[str]:
    """Return the lines of a compressed file that are not empty."""
    with gzip.open(path, "rt", encoding="utf-8-sig", errors="replace") as text:
        return [line for each in text if (line := each.strip())]


def endless(lines: Sequence[str], seed: int) -> Iterator[str]:
    """Yield the lines in order, again and again, from one that depends on the seed.

    >>> list(islice(endless(["a", "b", "c"], seed=1), 4))
    ['a', 'b', 'c', 'a']
    """
    start = Random(seed).randrange(len(lines))  # noqa: S311 - a place to begin
    return islice(cycle(lines), start, None)

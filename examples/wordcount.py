"""Lines of text, split into words, counted: the smallest application.

Plan it: `sojourn plan examples.wordcount:app --rate lines=200 --target-p95 100ms`.
Run it: `sojourn run examples.wordcount:app --target-p95 100ms`.
"""  # noqa: INP001 - a program on its own

from collections.abc import Iterator

import sojourn as sj

app = sj.App("wordcount")
lines = app.source("lines", schema="line string")


@app.operator(reads=lines, emits="word string", service_s=0.004, sends=8.5)
def split(line: str) -> Iterator[tuple[str]]:
    """Yield the words of a line."""
    for word in line.split():
        yield (word,)


counts = app.aggregate(
    "count",
    reads=split,
    by="word",
    columns={"n": "count(*)"},
    emits="word string, n bigint",
    service_s=0.0004,
)
app.sink(counts)

"""Lines of text, split into words, counted: the smallest application.

Planned, not yet run: `sj.minimise(app.topology({"lines": 200}), sj.Target("p95", 0.1))`.
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

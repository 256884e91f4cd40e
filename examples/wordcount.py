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


@app.operator(
    reads=split.by("word"), emits="word string, n bigint", state={"n": 0}, service_s=0.0004
)
def count(state: dict[str, int], word: str) -> Iterator[tuple[str, int]]:
    """Yield a word with how often it has come."""
    state["n"] += 1
    yield word, state["n"]


app.sink(count)

"""An application for several nodes: words are counted by key, in a state."""

import time

import sojourn as sj

app = sj.App("words")
lines = app.source("lines", schema="line string")


@app.operator(reads=lines, emits="word string", service_s=0.001, sends=2.0)
def split(line):
    """Yield the words of a line."""
    yield from ((word,) for word in line.split())


@app.operator(
    reads=split.by("word"), emits="word string, n long", state={"n": 0}, service_s=0.005
)
def count(state, word):
    """Count a word, which takes a moment."""
    time.sleep(0.005)
    state["n"] += 1
    yield word, state["n"]


app.sink(count)

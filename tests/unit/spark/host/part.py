"""An application whose operators pass records to each other, for hosts under test."""

import os
import time
from itertools import pairwise
from pathlib import Path

import sojourn as sj

app = sj.App("part")
lines = app.source("lines", schema="line string")


@app.operator(reads=lines, emits="word string, next string")
def split(line):
    yield from pairwise(line.split())


SEEN = {}


@app.operator(reads=split.by("word", "next"), emits="pair string, seen int, processor int")
def count(word, next):  # noqa: A002 - as the column is called
    pair = f"{word} {next}"
    SEEN[pair] = SEEN.get(pair, 0) + 1
    yield (pair, SEEN[pair], os.getpid())


@app.operator(reads=split.by("word"), emits="word string")
def first(word, next):  # noqa: A002, ARG001 - as the column is called
    """Send the word on; one that is a path only once there is a file."""
    while word.startswith("/") and not Path(word).exists():
        time.sleep(0.01)
    yield (word,)


@app.operator(reads=first, emits="word string")
def again(word):
    """Read a sink: what is written to Kafka and read in memory."""
    if word == "raise":
        raise ValueError("a bad word")
    yield (f"{word} again",)


app.sink(count)
app.sink(first)
app.sink(again)

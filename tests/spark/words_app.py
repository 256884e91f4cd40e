"""Two operators that follow each other: the second fails at one word, and waits at another."""

import os
import time
from pathlib import Path

import sojourn as sj

app = sj.App("words")
lines = app.source("lines", schema="line string")


@app.operator(reads=lines, emits="word string")
def split(line):
    """Yield the words of a line."""
    for word in line.split():
        yield (word,)


@app.operator(reads=split, emits="word string", on_error="dead_letter")
def shout(word):
    """Yield a word in capitals."""
    if word == "mute":
        raise ValueError("no voice")
    while word == "slow" and not Path(os.environ["WORDS_HURRY"]).exists():
        time.sleep(0.05)
    yield (f"{word.upper()}!",)


app.sink(shout)

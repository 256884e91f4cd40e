"""An application for hosts under test."""

import os
import time

import sojourn as sj

app = sj.App("words")
lines = app.source("lines", schema="line string")


def brackets():
    return "<{}>"


@app.operator(reads=lines, emits="word string", set_up=brackets)
def split(form, line):
    for word in line.split():
        yield (form.format(word),)


@app.operator(reads=lines, emits="line string, processor int")
def who(line):
    yield (line, os.getpid())


@app.operator(reads=lines, emits="line string")
def slowly(line):
    time.sleep(0.1)
    yield (line,)


app.sink(split)
app.sink(who)
app.sink(slowly)

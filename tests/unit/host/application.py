"""An application for hosts under test."""

import sojourn as sj

app = sj.App("words")
lines = app.source("lines", schema="line string")


def brackets():
    return "<{}>"


@app.operator(reads=lines, emits="word string", set_up=brackets)
def split(form, line):
    for word in line.split():
        yield (form.format(word),)


app.sink(split)

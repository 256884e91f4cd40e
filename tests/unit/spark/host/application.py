"""An application for hosts under test."""

import os
import time
from pathlib import Path

import sojourn as sj

app = sj.App("words")
lines = app.source("lines", schema="line string")


def brackets():
    return "<{}>"


@app.operator(reads=lines, emits="word string", set_up=brackets)
def split(form, line):
    for word in line.split():
        yield (form.format(word),)


TORN_DOWN = []


def opened():
    try:
        yield len(TORN_DOWN)
    finally:
        TORN_DOWN.append(os.getpid())


@app.operator(reads=lines, emits="line string, before int", set_up=opened)
def cleaned_up(before, line):
    yield (line, before)


@app.operator(reads=lines, emits="id string, line string", set_up=brackets, record_id=True)
def named(form, record_id, line):
    yield (form.format(record_id), line)


@app.operator(reads=lines.by("line"), emits="line string, n int", state={"n": 0}, nulls=True)
def forgets(state, line):
    """Count what comes of each line, with messages that have no value."""
    state["n"] = state["n"] + 1
    yield (line, state["n"])


@app.operator(reads=lines, emits="line string, processor int")
def who(line):
    yield (line, os.getpid())


@app.operator(reads=lines, emits="line string")
def slowly(line):
    time.sleep(0.1)
    yield (line,)


@app.operator(reads=lines.by("line"), emits="line string, began double, ended double")
def timed(line):
    began_s = time.monotonic()
    time.sleep(0.01)
    yield (line, began_s, time.monotonic())


@app.operator(reads=lines.broadcast(), emits="line string")
def first_raises(line):
    """Raise at whichever processor comes first to the folder that the line names."""
    try:
        Path(line).mkdir()
    except FileExistsError:
        yield (line,)
    else:
        raise ValueError("first")


LEARNT = []


@app.operator(reads=lines.broadcast(latest_by="line"), emits="line string, processor int")
def learn(line):
    LEARNT.append(line)
    yield (",".join(LEARNT), os.getpid())


@app.operator(reads=lines.by("line"), emits="line string, n bigint", state={"n": 0})
def counted(state, line):
    """Count lines; of one that is `bad` after the second time, fail when it is counted."""
    time.sleep(0.002)
    state["n"] += 1
    if line == "bad" and state["n"] > 2:
        raise ValueError("no more of these")
    yield (line, state["n"])


@app.operator(reads=lines.by("line"), emits="line string, note string", state={"n": 0})
def reminding(state, line):
    """Be reminded twice of each line; of one that is `bad`, fail the second time."""
    if state.reminded is None:
        state["n"] += 1
        state.remind(after_s=0.2, note=f"early {state['n']}")
        state.remind(after_s=1.5, note=f"late {state['n']}")
    elif line == "bad" and state.reminded.note.startswith("late"):
        state.remind(after_s=0.0, note="never")
        raise ValueError("no")
    else:
        yield line, state.reminded.note


@app.operator(reads=lines, emits="word string, pid bigint")
def where(line):
    """Say which process it was."""
    if line.startswith("slow"):
        time.sleep(0.01)
    yield line, os.getpid()


@app.operator(reads=lines, emits="line string, held bigint")
def holds(line):
    """Hold so many megabytes."""
    held = b"x" * (int(line) << 20)
    yield line, len(held)


app.sink(where)
app.sink(holds)
app.sink(counted)
app.sink(reminding)
app.sink(learn)
app.sink(timed)
app.sink(first_raises)
app.sink(split)
app.sink(named)
app.sink(cleaned_up)
app.sink(who)
app.sink(slowly)

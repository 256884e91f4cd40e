"""Two nested loops, keys, and a deduplicated sink: for trials with kills.

The results depend only on the content of the records, so `results` can compute them.
"""

import time

import sojourn as sj
from sojourn_trial.applications.loop_app import drawn

INNER, OUTER, TWINS = 0.25, 0.15, 0.2
"""The fractions of records that go round the inner and the outer loop, and of split roots."""
SLOW, SLOW_S, WORK_S = 0.01, 6.0, 0.005
"""The fraction of records that take longer than a batch, their time, and that of the others."""
KEYS = 12
ALLOCATION = {"enter": 2, "work": 8, "judge": 2}

_RECORD = "number long, key string, part int, inner int, outer int"

app = sj.App("nested")
roots = app.source("roots", schema="number long, key string")
inner = app.stream("inner", schema=_RECORD)
outer = app.stream("outer", schema=_RECORD)


def key_of(number):
    """Return the key of a root."""
    return f"k{int(drawn(number, 'key') * KEYS)}"


def turn(record):
    """Return the stream on which the judge emits a record, and the record that it emits."""
    number, key, part, inner_, outer_ = record
    way = drawn(*record)
    if way < INNER:
        return "inner", (number, key, part, inner_ + 1, outer_)
    if way < INNER + OUTER:
        return "outer", (number, key, part, inner_, outer_ + 1)
    return "done", record


def parts(number):
    """Return the parts into which a root is split."""
    return range(2 if drawn(number, "twins") < TWINS else 1)


def results(number):
    """Yield the results of a root."""
    for part in parts(number):
        way, record = turn((number, key_of(number), part, 0, 0))
        while way != "done":
            way, record = turn(record)
        yield record


def expected(entered):
    """Return the final content of each sink, given the roots that have *entered*."""
    done = [result for number, _ in entered for result in results(number)]
    return {"stamped": entered, "done": done, "done-once": done}


@app.operator(
    reads=[roots.by("key"), outer.by("key")],
    emits={"into": _RECORD, "stamped": "number long, key string"},
    sends={"into": 1.0, "stamped": 0.8},
    service_s=WORK_S,
)
def enter(stream, record):
    """Split a root, and emit it to a sink; pass on records of the outer loop."""
    time.sleep(WORK_S)
    if stream == "outer":
        yield "into", record
        return
    number, key = record
    yield "stamped", (number, key)
    for part in parts(number):
        yield "into", (number, key, part, 0, 0)


@app.operator(
    reads=[enter["into"].by("key"), inner.by("key")], emits=_RECORD, service_s=10 * WORK_S
)
def work(_stream, record):
    """Take some time, occasionally more than a batch."""
    time.sleep(SLOW_S if drawn("slow", *record) < SLOW else WORK_S)
    yield record


@app.operator(
    reads=work,
    emits={"inner": inner, "outer": outer, "done": _RECORD},
    sends={"inner": INNER, "outer": OUTER, "done": 1 - INNER - OUTER},
    service_s=WORK_S,
)
def judge(*record):
    """Send a record round a loop, or to the sink."""
    time.sleep(WORK_S)
    yield turn(record)


app.sink(enter["stamped"])
app.sink(judge["done"])
app.sink(judge["done"], name="done-once", deduplicate=True)

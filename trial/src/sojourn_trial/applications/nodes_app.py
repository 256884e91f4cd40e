"""An application for several nodes that counts words in a state by key.

The expected results are known: each word with the numbers from 1 to its count.
"""

import json
import time

from confluent_kafka import Producer

import sojourn as sj
from sojourn_trial.kills.ledger import compare, written

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
    """Count a word, which takes 5 ms."""
    time.sleep(0.005)
    state["n"] += 1
    yield word, state["n"]


app.sink(count)


def send(servers, first, number):
    """Send *number* lines, starting with line *first*."""
    numbers = range(first, first + number)
    _send(servers, [f"word-{each % 7} word-{each % 3}" for each in numbers])


def send_empty(servers, number):
    """Send *number* lines without words, which have no results."""
    _send(servers, [""] * number)


def _send(servers, lines):
    produce(servers, app.topic("lines"), [{"line": line} for line in lines])


def produce(servers, topic, records):
    """Write *records* to a topic, as JSON."""
    producer = Producer({"bootstrap.servers": servers})
    for record in records:
        producer.produce(topic, json.dumps(record).encode())
    producer.flush()


def outcome(servers, lines):
    """Compare the results with those expected of *lines* lines."""
    due, seen = [], {}
    for number in range(lines):
        for word in (f"word-{number % 7}", f"word-{number % 3}"):
            seen[word] = seen.get(word, 0) + 1
            due.append((word, seen[word]))
    rows = (tuple(json.loads(each).values()) for each in written(servers, app.topic("count")))
    return compare(due, rows)

"""State by key at a real host: what functions change counts with what they yield, or not."""

import json
import threading
import time
from collections import Counter
from dataclasses import replace

import pytest

from host.relaying import batch_of, by_line, route_of
from host.test_relay import killed, line
from sojourn.app.operator import OnError
from sojourn.spark.host.batch.cut_store import CutFiles
from sojourn.spark.host.state.expiry import unstamped
from sojourn.spark.processor.state_codec import StateCodec
from unit.spark.host.application import counted

pytestmark = pytest.mark.timeout(120)

ROUTE = route_of("counted", keyed=by_line("counted"))
SETTINGS = {"stateful": True, "route": ROUTE, "on_error": OnError(then="dead_letter")}


def counts(rows):
    """Return the numbers that were written for each line, in order."""
    found = {}
    for row in rows:
        if row["topic"] == "words-topic":
            told = json.loads(row["value"])
            found.setdefault(told["line"], []).append(told["n"])
    return {name: sorted(numbers) for name, numbers in found.items()}


def kept(folder, batch):
    """Return the numbers of the cut of a batch, by key."""
    files, codec = CutFiles(folder / "cuts", readonly=True), StateCodec("count", counted.state)
    states = files.state.states("counted", files.load(files.last(batch)).changed)
    found = {key: codec.decode(unstamped(state))["n"] for key, state in states}
    files.state.close()
    return found


def test_a_record_that_fails_changes_nothing(host, tmp_path):
    query = host("counted", processors=3, **SETTINGS)
    rows = query.results(*[line(word) for _ in range(5) for word in ("good", "bad")])
    assert counts(rows) == {"good": [1, 2, 3, 4, 5], "bad": [1, 2]}
    assert sum(row["topic"] == "dead-topic" for row in rows) == 3
    assert kept(tmp_path, 0) == {'["good"]': 5, '["bad"]': 2}


def test_a_message_without_a_value_reaches_the_state_of_its_key(host):
    """The key is that of the message; one without a key is an error of the record."""
    route = route_of("forgets", keyed=by_line("forgets"))
    query = host("forgets", **SETTINGS | {"route": route, "nulls": True})
    came = [query.row(line("a")), query.row(None, key=b"a"), query.row(None, key=None)]
    rows = query.rows_of(came)
    assert counts(rows) == {"a": [1, 2]}
    (letter,) = [row for row in rows if row["topic"] == "dead-topic"]
    assert letter["value"] is None
    assert query.told[-1].operators["forgets"].state.nulls == 0


def test_a_message_without_a_value_is_skipped_and_counted_where_nobody_asks_for_it(host):
    query = host("split")
    rows = query.rows_of(
        [query.row(line("a")), query.row(None, key=b"a"), query.row(line("b"))]
    )
    assert [json.loads(row["value"])["word"] for row in rows] == ["<a>", "<b>"]
    assert query.tally().operators["split"].state.nulls == 1


def test_the_most_frequent_key_is_reported(host):
    """From the records to what the loop gets to know; reports may divide them."""
    query = host("counted", processors=3, **SETTINGS)
    query.results(*map(line, ["the"] * 40 + ["of"] * 10))
    told = [tally.operators["counted"] for tally in query.told]
    named = {t.hottest_name for t in told if t.hottest}
    assert named
    assert named <= {"'the'", "'of'"}
    assert max(told, key=lambda t: sum(t.bytes.values())).hottest_name == "'the'"


def test_each_record_counts_once_while_processors_come_and_go(host, controller, tmp_path):
    query = host("counted", processors=2, **SETTINGS)
    words = [f"word{number % 7}" for number in range(400)]

    def rescale():
        for processors in (6, 1, 4):
            controller.scale("counted", processors)
            controller.await_running("counted", processors)

    rescaling = threading.Thread(target=rescale)
    rescaling.start()
    rows = query.results(*map(line, words))
    rescaling.join()
    numbers = Counter(words)
    assert counts(rows) == {word: list(range(1, n + 1)) for word, n in numbers.items()}
    assert kept(tmp_path, 0) == {json.dumps([word]): n for word, n in numbers.items()}


def test_a_host_that_follows_one_that_was_killed_counts_on(host, controller, tmp_path):
    query = host("counted", processors=2, **SETTINGS)
    query.results(*[line("word")] * 10)
    killed(controller, "counted")
    host("counted", processors=2, **SETTINGS)
    query.run = "another run"
    assert counts(query.results(*[line("word")] * 3)) == {"word": [11, 12, 13]}
    assert kept(tmp_path, 1) == {'["word"]': 13}


REMINDING = {**SETTINGS, "route": route_of("reminding", keyed=by_line("reminding"))}


def notes(rows):
    """Return what was noted in reminders that came, by line."""
    found = {}
    for row in rows:
        if row["topic"] == "words-topic":
            told = json.loads(row["value"])
            found.setdefault(told["line"], []).append(told["note"])
    return found


def awaited(query, enough):
    """Return the rows of batches without a record, until there are *enough*."""
    rows, until_s = [], time.monotonic() + 60
    while not enough(rows) and time.monotonic() < until_s:
        rows += query.results()
    return rows


def test_a_function_is_called_again_for_its_key_once_for_each_reminder(host):
    query = host("reminding", processors=3, **REMINDING)
    rows = query.results(line("a"), line("b"), line("a"))
    rows += awaited(query, lambda more: len(rows) + len(more) >= 6)
    assert notes(rows) == {
        "a": ["early 1", "early 2", "late 1", "late 2"],
        "b": ["early 1", "late 1"],
    }


def test_reminders_survive_the_host_and_come_once(host, controller):
    query = host("reminding", processors=2, **REMINDING)
    rows = query.results(line("a"))
    killed(controller, "reminding")
    time.sleep(0.3)  # the early one is due while nobody is there
    host("reminding", processors=2, **REMINDING)
    query.run = "another run"
    rows += awaited(query, lambda more: len(rows) + len(more) >= 2)
    assert notes(rows) == {"a": ["early 1", "late 1"]}


def test_a_reminder_at_which_the_function_raises_is_a_dead_letter(host):
    query = host("reminding", processors=1, **REMINDING)
    rows = query.results(line("bad"))
    rows += awaited(query, lambda more: len(rows) + len(more) >= 2)
    assert notes(rows) == {"bad": ["early 1"]}
    (letter,) = [row for row in rows if row["topic"] == "dead-topic"]
    assert json.loads(letter["value"])["note"] == "late 1"


def test_a_reminder_that_is_put_back_in_reaches_the_function_and_its_key(host):
    route = replace(REMINDING["route"], retries="retries")
    query = host("reminding", processors=1, **{**REMINDING, "route": route})
    told = {"sojourn-for": b"dead-topic/reminding", "sojourn-stream": b"reminding@reminders"}
    headers = [{"key": name, "value": text} for name, text in told.items()]
    value = json.dumps({"key": '["a"]', "note": "again", "due_s": 5.0}).encode()
    rows = query.rows_of([batch_of(0, value, topic="retries", headers=headers)], wait=False)
    rows += awaited(query, lambda more: rows or more)
    assert notes(rows) == {"a": ["again"]}


def test_a_state_that_has_not_changed_is_removed(host, tmp_path):
    query = host("counted", processors=1, ttl_s=1.0, **SETTINGS)
    assert counts(query.results(line("a"), line("a"))) == {"a": [1, 2]}
    assert kept(tmp_path, 0) == {'["a"]': 2}
    awaited(query, lambda _: not kept(tmp_path, query.batch - 1))
    assert kept(tmp_path, query.batch - 1) == {}
    assert counts(query.results(line("a"))) == {"a": [1]}

"""State by key at a real host: what functions change counts with what they yield, or not."""

import json
import threading
from collections import Counter

import pytest

from host.relaying import by_line, route_of
from host.test_relay import killed, line
from sojourn.app.operator import OnError
from sojourn.host.batch.cut_store import CutFiles
from sojourn.host.process.state_codec import StateCodec
from unit.host.application import counted

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
    states = files.states(files.load(files.last(batch)), "counted")
    found = {key: codec.decode(state)["n"] for key, state in states}
    files.state.close()
    return found


def test_a_record_that_fails_changes_nothing(host, tmp_path):
    query = host("counted", processors=3, **SETTINGS)
    rows = query.results(*[line(word) for _ in range(5) for word in ("good", "bad")])
    assert counts(rows) == {"good": [1, 2, 3, 4, 5], "bad": [1, 2]}
    assert sum(row["topic"] == "dead-topic" for row in rows) == 3
    assert kept(tmp_path, 0) == {'["good"]': 5, '["bad"]': 2}


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

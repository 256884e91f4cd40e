"""The harness for tests of applications: what functions see, and what comes out."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sojourn as sj
from sojourn.errors import ApplicationStopped, BadApplication, BadInput, BadRecord
from sojourn.testing import AppHarness, run

WORDS = st.lists(st.sampled_from(["to", "be", "or", "not", "ä", ""]), max_size=8)


def wordcount(**settings):
    app = sj.App("wordcount")
    lines = app.source("lines", schema="line string")

    @app.operator(reads=lines, emits="word string")
    def split(line):
        for word in line.split():
            yield (word,)

    @app.operator(
        reads=split.by("word"), emits="word string, n bigint", state={"n": 0}, **settings
    )
    def count(state, word):
        state["n"] += 1
        yield word, state["n"]

    app.sink(split, name="words")
    app.sink(count)
    return app


@given(lines=st.lists(WORDS.map(" ".join), max_size=10))
def test_results_are_those_of_plain_python(lines):
    done = run(wordcount(), {"lines": [(line,) for line in lines]})
    words = " ".join(lines).split()
    assert done["words"] == [(word,) for word in words]
    assert dict(done["count"]) == Counter(words)
    with AppHarness(wordcount()) as harness:
        harness.send("lines", *((line,) for line in lines))
        assert harness.results == done
        assert harness.states("count") == {(w,): {"n": n} for w, n in Counter(words).items()}
    assert [n for word, n in done["count"] if word == "to"] == [
        n + 1 for n in range(words.count("to"))
    ]


def reminding():
    """Return an application that yields the calls its function gets, with their time."""
    app = sj.App("later")
    asked = app.source("asked", schema="key string, after_s double, note string")

    @app.operator(
        reads=asked.by("key"), emits="key string, note string, due_s double", state={"n": 0}
    )
    def call(state, key, after_s, note):
        state["n"] += 1
        if state.reminded is None:
            state.remind(after_s=after_s, note=note)
        else:
            assert (after_s, note) == (None, None)
            yield key, state.reminded.note, state.reminded.due_s

    app.sink(call)
    return app


@given(
    asked=st.lists(
        st.tuples(st.sampled_from("ab"), st.floats(0, 100), st.sampled_from("xyz")), max_size=8
    ),
    steps=st.lists(st.floats(0, 60), max_size=6),
)
def test_reminders_are_called_in_the_order_in_which_they_are_due(asked, steps):
    with AppHarness(reminding(), now_s=1000.0) as harness:
        harness.send("asked", *asked)
        for step in steps:
            harness.advance(step)
            due = [due_s for *_, due_s in harness.results["call"]]
            assert due == sorted(due)
            expected = [1000 + after_s for _, after_s, _ in asked]
            assert Counter(due) == Counter(s for s in expected if s <= harness.now_s)
        assert harness.now_s == pytest.approx(1000 + sum(steps))
        for key in {key for key, *_ in asked}:
            calls = sum(each[0] == key for each in (*asked, *harness.results["call"]))
            assert harness.state("call", key) == {"n": calls}


def test_a_reminder_that_is_due_at_once_is_called_at_once():
    assert run(reminding(), {"asked": [("a", 0.0, "now")]}) == {"call": [("a", "now", 0.0)]}


def test_states_expire_when_they_have_not_changed():
    with AppHarness(wordcount(ttl_s=10.0)) as harness:
        harness.send("lines", ("to",))
        harness.advance(9)
        harness.send("lines", ("to",))
        harness.advance(9)
        assert harness.state("count", "to") == {"n": 2}
        harness.advance(1)
        assert harness.state("count", "to") == {"n": 0}
        harness.send("lines", ("to",))
    assert harness.results["count"] == [("to", 1), ("to", 2), ("to", 1)]


def failing(**settings):
    app = sj.App("failing")
    numbers = app.source("numbers", schema="n int")
    calls = []

    @app.operator(reads=numbers.by("n"), emits="n int", state={"calls": 0}, **settings)
    def check(state, n):
        calls.append(n)
        state["calls"] += 1
        yield (n,)
        if n == 7:
            raise ValueError("seven")

    app.sink(check)
    return app, calls


def test_a_record_that_fails_is_retried_and_becomes_a_dead_letter_without_a_trace():
    app, calls = failing(on_error=sj.OnError(retries=2, then="dead_letter"))
    with AppHarness(app) as harness:
        harness.send("numbers", (1,), (7,), (2,))
        (letter,) = harness.dead_letters
        assert harness.state("check", 7) == {"calls": 0}
    assert calls == [1, 7, 7, 7, 2]
    assert harness.results["check"] == [(1,), (2,)]
    assert (letter.operator, letter.stream, letter.record) == ("check", "numbers", (7,))
    assert (letter.error, letter.tries) == ("ValueError: seven", 3)
    assert 'raise ValueError("seven")' in letter.traceback


def test_without_dead_letters_the_application_stops():
    app, _ = failing()
    with AppHarness(app) as harness:
        with pytest.raises(ApplicationStopped, match="check: a record failed: ValueError: sev"):
            harness.send("numbers", (1,), (7,), (2,))
        assert harness.results["check"] == [(1,)]


def test_a_reminder_that_fails_is_a_dead_letter_with_its_key():
    app = sj.App("failing")

    @app.operator(
        reads=app.source("keys", schema="key string").by("key"),
        state={"n": 0},
        on_error="dead_letter",
    )
    def check(state, key):
        if state.reminded is not None:
            raise ValueError(key)
        state.remind(after_s=5)

    with AppHarness(app) as harness:
        harness.send("keys", ("a",))
        harness.advance(5)
    (letter,) = harness.dead_letters
    assert (letter.stream, letter.record) == ("check@reminders", ("a",))


def test_a_loop_ends_or_is_reported():
    app = sj.App("loop")
    halves = app.stream("halves", schema="n int")

    @app.operator(reads=[app.source("numbers", schema="n int"), halves], emits=halves)
    def halve(_stream, record):
        if record[0] != 1:
            yield (record[0] // 2,)

    app.sink(halves)
    assert run(app, {"numbers": [(9,)]}) == {"halves": [(4,), (2,), (1,)]}
    with (
        AppHarness(app, most_records=100) as harness,
        pytest.raises(ApplicationStopped, match="more than 100 records; check that the loop"),
    ):
        harness.send("numbers", (0,))


def test_set_up_is_called_once_and_ends_with_the_harness():
    app, seen = sj.App("set_up"), []

    def model():
        seen.append("open")
        yield "model"
        seen.append("closed")

    @app.operator(
        reads=app.source("lines", schema="line string"),
        emits="line string, id string",
        set_up=model,
        record_id=True,
    )
    def use(model, record_id, line):
        seen.append(line)
        yield f"{model} {line}", record_id

    app.sink(use)
    done = run(app, {"lines": [("a",), ("b",)]})
    assert seen == ["open", "a", "b", "closed"]
    assert done["use"] == [("model a", "set_up.lines/0/0"), ("model b", "set_up.lines/0/1")]


def test_a_record_without_a_key_fails_as_on_spark():
    with (
        AppHarness(reminding()) as harness,
        pytest.raises(ApplicationStopped, match="is null or missing"),
    ):
        harness.send("asked", (None, 1.0, "x"))


def test_what_cannot_be_tested_is_refused():
    app = wordcount()
    with AppHarness(app) as harness:
        with pytest.raises(BadInput, match="no source 'words'; sources: lines"):
            harness.send("words", ("to",))
        with pytest.raises(BadRecord, match=r"sources\.lines\.line"):
            harness.send("lines", (1,))
        with pytest.raises(BadInput, match="no operator 'split' with a state"):
            harness.state("split", "to")
        with pytest.raises(BadInput, match="key of count is word string; 2 values are given"):
            harness.state("count", "to", 2)
        for seconds in (-1, float("nan"), float("inf")):
            with pytest.raises(BadInput, match="must not be negative"):
                harness.advance(seconds)
    native = sj.App("native")
    lines = native.source("lines", schema="line string")
    native.sink(native.project("upper", reads=lines, columns={"line": "upper(line)"}))
    with pytest.raises(BadInput, match="upper: projections and aggregations run only on Spark"):
        AppHarness(native)
    with pytest.raises(BadApplication, match="there is no source"):
        AppHarness(sj.App("empty"))

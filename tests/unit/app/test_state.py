"""What operators declare to keep, checked before anything starts."""

import pytest

import sojourn as sj
from sojourn.app.schema import parse_fields
from sojourn.app.state import key_of_message, state_fields
from sojourn.errors import BadApplication, BadInput


def fields(declared):
    return state_fields("operators.count.state", declared)


@pytest.mark.parametrize(
    ("ddl", "key", "found"),
    [
        (
            "user string, day date",
            b'{"user":"ada","day":"2026-01-31","n":1}',
            '["ada", "2026-01-31"]',
        ),
        ("user string, day date", b'{"user":"ada"}', None),
        ("user string, day date", b'["ada","2026-01-31"]', None),
        ("rate double", b"1", "[1.0]"),
        ("rate double", b"[1]", None),
        ("user string", b"[1]", '["[1]"]'),
        ("user string", b"[" * 100_000, None),
    ],
)
def test_the_key_of_a_message_is_an_object_or_the_value_of_one_column(ddl, key, found):
    assert key_of_message(parse_fields(ddl, "key"), key) == found


def test_defaults_tell_types():
    found = fields({"n": 0, "mean": 0.0, "word": "", "seen": False, "raw": b""})
    assert str(found) == "n bigint, mean double, word string, seen boolean, raw binary"
    assert found.defaults == {"n": 0, "mean": 0.0, "word": "", "seen": False, "raw": b""}


def test_ddl_has_no_defaults():
    found = fields("n bigint, seen array<string>")
    assert found.defaults == {"n": None, "seen": None}


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ({}, "{} is not a state"),
        (7, "7 is not a state"),
        ({"seen": []}, "[] is not enough to infer the type of the field"),
        ({"n": None}, "None is not enough to infer the type"),
        ({"n": ("bigint", "x")}, "does not fit bigint"),
        ({"n": ("bigint not null", None)}, "it is not null, but has no default"),
        ({"n": ("bignt", 0)}, "'bignt' is not a type"),
        ("n bignt", "'bignt' is not a type"),
        ({"n": 0, "N": 1}, "n"),
    ],
)
def test_what_is_no_state_is_refused(declared, said):
    with pytest.raises(BadInput, match=r"operators\.count\.state") as raised:
        fields(declared)
    assert said in str(raised.value)


def app_reading(*reads):
    app = sj.App("words")
    streams = [app.source(name, schema=schema) for name, schema, _ in reads]
    keyed = [s.by(key) if key else s for s, (_, _, key) in zip(streams, reads, strict=True)]

    @app.operator(reads=keyed, emits="n bigint", state={"n": 0})
    def count(state, stream, record):
        state["n"] += len(stream) * len(record)
        yield (state["n"],)

    return app, count


def test_a_function_gets_the_state_before_the_record():
    _, count = app_reading(("words", "word string", "word"))
    state = {"n": 4}
    assert list(count(state, "words", ("a",))) == [(9,)]
    assert state == {"n": 9}


def test_a_stream_that_is_not_read_by_key_is_refused():
    with pytest.raises(BadApplication, match=r"words is not read by key; write words\.by"):
        app_reading(("words", "word string", ""))


def test_keys_of_different_types_are_refused():
    with pytest.raises(BadApplication, match="words by string; numbers by bigint"):
        app_reading(("words", "word string", "word"), ("numbers", "n bigint", "n"))


def test_a_function_that_has_no_place_for_the_state_is_refused():
    app = sj.App("words")
    words = app.source("words", schema="word string")
    with pytest.raises(BadApplication, match=r"called with \(state, word\)"):

        @app.operator(reads=words.by("word"), state={"n": 0})
        def count(word):
            pass


def expiring(**settings):
    app = sj.App("words")
    words = app.source("words", schema="word string")

    def count(*_):
        pass

    return app.operator(reads=words.by("word"), **settings)(count)


@pytest.mark.parametrize("ttl_s", [0, -5, float("nan"), "1h", 1e12])
def test_a_time_to_live_that_cannot_be_is_named(ttl_s):
    with pytest.raises(BadApplication, match=rf"operators\.count\.ttl_s: .*{ttl_s!s}"):
        expiring(state={"n": 0}, ttl_s=ttl_s)


def test_nothing_expires_where_no_state_is_kept():
    with pytest.raises(BadApplication, match="keeps no state that could expire"):
        expiring(ttl_s=5)

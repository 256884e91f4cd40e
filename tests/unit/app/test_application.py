import re
from functools import partial

import pytest

import sojourn as sj
from sojourn.app.operator import NativeOperator, PythonOperator
from sojourn.app.stream import Stream
from sojourn.errors import BadApplication, BadSchema


def split(line):
    for word in line.split():
        yield (word,)


def anything(value, /):
    yield (value,)


def two(user, line):
    yield user, line


def store(line):
    assert line


def named(stream, record):
    yield stream, record


@pytest.fixture
def app():
    return sj.App("wordcount")


@pytest.fixture
def lines(app):
    return app.source("lines", schema="line string")


def refusal(call, *arguments, **named_arguments):
    with pytest.raises(BadApplication) as caught:
        call(*arguments, **named_arguments)
    return str(caught.value)


def test_the_application_is_what_was_written(app, lines):
    words = app.operator(reads=lines, emits="word string")(split)
    counts = app.aggregate("count", reads=words, by="word", columns={"n": "count(*)"})
    app.sink(counts)
    app.check()
    assert list(app.sources) == ["lines"]
    assert list(app.streams) == ["lines", "split", "count"]
    assert app.operators == {"split": words, "count": counts}
    assert {name: sink.stream for name, sink in app.sinks.items()} == {"count": counts.stream}
    assert isinstance(words, PythonOperator)
    assert isinstance(counts, NativeOperator)
    assert (words.native, counts.native) == (False, True)
    assert counts.stream == Stream(name="count", columns=("word", "n"), schema=None)


def test_an_operator_is_still_the_function_that_was_written(app, lines):
    words = app.operator(reads=lines, emits="word string")(split)
    assert list(words("to be or not")) == [("to",), ("be",), ("or",), ("not",)]


def test_what_is_not_said_has_a_default(app, lines):
    words = app.operator(reads=lines, emits="word string")(split)
    assert words.on_error == sj.OnError(retries=0, then="stop")
    assert words.time_limit_s == 300
    assert words.records_per_transfer is None
    assert (words.min_processors, words.max_processors) == (1, None)
    assert words.hints == sj.Hints()


def test_what_is_said_is_kept(app, lines):
    words = app.operator(
        reads=lines,
        emits="word string",
        name="cut",
        on_error=sj.OnError(retries=3, then="dead_letter"),
        time_limit_s=2.5,
        records_per_transfer=10,
        min_processors=2,
        max_processors=8,
        service_s=0.1,
        service_scv=0.5,
        sends=8.5,
    )(split)
    assert words.name == words.stream.name == "cut"
    assert words.on_error == sj.OnError(retries=3, then="dead_letter")
    assert (words.time_limit_s, words.records_per_transfer) == (2.5, 10)
    assert (words.min_processors, words.max_processors) == (2, 8)
    assert words.hints == sj.Hints(service_s=0.1, service_scv=0.5, sends={"cut": 8.5})


def test_a_function_may_ask_for_the_id_of_the_record(app, lines):
    def named(record_id, line):
        yield (f"{record_id}: {line}",)

    assert app.operator(reads=lines, emits="id string", record_id=True)(named).record_id
    message = refusal(app.operator(reads=lines, emits="word string", record_id=True), split)
    assert "is called with (record_id, line)" in message


def test_a_source_has_samples_if_they_are_given(app):
    def numbered(seed):
        yield (str(seed),)

    app.source("given", schema="line string", samples=numbered)
    app.source("bare", schema="line string")
    assert app.samples == {"given": numbered}
    for wrong, problem in ((7, "7 is not a function"), (slow, "it is async")):
        message = refusal(app.source, "bad", schema="line string", samples=wrong)
        assert message.startswith("sources.bad.samples: ")
        assert problem in message


def test_a_sink_has_the_topic_of_its_stream_unless_it_is_deduplicated(app, lines):
    words = app.operator(reads=lines, emits="word string", name="cut")(split)
    app.sink(words, name="plain")
    app.sink(words, name="once", deduplicate=True)
    assert app.topic("plain") == app.topic("cut")
    assert app.topic("once") == f"{app.name}.once"


def test_an_error_policy_may_be_a_word(app, lines):
    words = app.operator(reads=lines, emits="word string", on_error="dead_letter")(split)
    assert words.on_error == sj.OnError(then="dead_letter")


def test_streams_are_read_by_key_or_by_all(app, lines):
    words = app.operator(reads=lines.by("line"), emits="word string")(split)
    again = app.operator(reads=words.by("word"), emits="word string", name="again")(anything)
    every = app.operator(reads=words.broadcast(), emits="word string", name="every")(anything)
    assert [(o.reads[0].grouping, o.reads[0].key) for o in (words, again, every)] == [
        ("key", ("line",)),
        ("key", ("word",)),
        ("broadcast", ()),
    ]


def test_the_latest_of_a_key_may_be_kept_for_those_that_start_later(app, lines):
    words = app.operator(reads=lines, emits="word string, n int")(split)
    for columns in ("word", ["word"], ("word",)):
        rules = words.broadcast(latest_by=columns)
        assert (rules.grouping, rules.key) == ("broadcast", ("word",))
    assert words.broadcast(latest_by=("word", "n")).key == ("word", "n")


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ("rule", "there is no column 'rule'; write one or more of line"),
        ("photo", "photo is binary, and cannot be a key; write one or more of line"),
        (["line", "rule"], "there is no column 'rule'"),
        ([], "no columns are named; write one or more of line"),
        (7, "no columns are named"),
    ],
)
def test_what_cannot_be_a_key_is_refused(app, columns, problem):
    rules = app.source("rules", schema="line string, photo binary")
    with pytest.raises(BadApplication, match=re.escape(problem)):
        rules.broadcast(latest_by=columns)
    if isinstance(columns, str):
        with pytest.raises(BadApplication, match=re.escape(problem)):
            rules.by(columns)


def test_an_operator_may_write_and_read_several_streams(app, lines):
    numbers = app.source("numbers", schema="n int")
    parts = app.operator(
        reads=[lines, numbers], emits={"texts": "line string", "odd": "n int"}, name="parts"
    )(named)
    assert (parts.names_input, parts.names_output) == (True, True)
    assert parts["odd"].schema == sj.parse_schema("n int")
    assert "operators.parts.emits: there is no stream 'even'; write" in refusal(
        lambda: parts["even"]
    )
    message = refusal(app.operator(reads=parts), store)
    assert message.endswith("write parts['texts'] or parts['odd']")
    app.operator(reads=parts["texts"])(store)
    app.check()


def test_a_list_of_one_stream_is_read_by_its_name_too(app, lines):
    assert app.operator(reads=[lines], emits={"out": "line string"})(named).names_input


def test_a_stream_may_lead_back(app, lines):
    again = app.stream("again", schema="line string")
    app.operator(reads=[lines, again], emits={"again": again, "done": "line string"})(named)
    app.check()


def test_several_operators_may_write_one_stream(app, lines):
    words = app.operator(reads=lines, emits="word string")(split)
    more = app.operator(reads=lines, emits=words, name="more")(split)
    assert more.stream == words.stream
    app.check()


def test_an_operator_that_emits_nothing_need_not_yield(app, lines):
    kept = app.operator(reads=lines)(store)
    assert kept.emits == ()
    assert "give it emits=" in refusal(lambda: kept.stream)


def test_set_up_comes_first(app, lines):
    def scored(model, line):
        yield (model[line],)

    app.operator(reads=lines, emits="score double", set_up=dict)(scored)
    message = refusal(app.operator(reads=lines, emits="x double", set_up=dict, name="b"), split)
    assert message.startswith("operators.b: it takes (line), but is called with (set_up, line)")


def test_a_projection_has_types_where_they_are_given(app, lines):
    app.project("length", reads=lines, columns={"n": "length(line)"})
    message = refusal(app.operator(reads=app.operators["length"], name="a"), store)
    assert message == (
        "operators.a.reads: the column types of stream length are not known; "
        "give length emits= with a type for each column"
    )
    app.project("size", reads=lines, columns={"n": "length(line)"}, emits="n int")
    app.operator(reads=app.operators["size"], name="b", emits="n int")(anything)


def swapped(page, user):
    yield page, user


def other(user, text):
    yield user, text


def defaulted(user, limit=3):
    yield user, limit


class Scores:
    """A function that is an object."""

    def __call__(self, user, page):
        """Emit nothing."""


class Misnamed:
    """One whose arguments are called otherwise."""

    def __call__(self, user, text):
        """Emit nothing."""


@pytest.mark.parametrize(
    ("function", "argument", "column"),
    [
        (swapped, "page", "user"),
        (other, "text", "page"),
        (defaulted, "limit", "page"),
        (partial(two), "line", "page"),
        (lambda user, word: (yield user, word), "word", "page"),
    ],
)
def test_an_argument_that_is_not_the_column_it_gets_is_refused(app, function, argument, column):
    clicks = app.source("clicks", schema="user string, page string")
    add = app.operator(reads=clicks, emits="user string, page string", name="a")
    assert refusal(add, function) == (
        f"operators.a: its argument {argument!r} gets the column {column!r}: arguments are "
        f"passed in the order of the columns, user, page; call it {column}, or _{column} if "
        "the function does not use it"
    )


def test_arguments_of_objects_are_looked_at_too(app):
    clicks = app.source("clicks", schema="user string, page string")
    app.operator(reads=clicks, name="a")(Scores())
    assert "its argument 'text' gets the column 'page'" in refusal(
        app.operator(reads=clicks, name="b"), Misnamed()
    )


@pytest.mark.parametrize(
    "taken",
    [
        "user, page",
        "user, _page",
        "User, page_",
        "user, *rest",
        "*record",
        "user, page, limit=3, **more",
        "first, second, /",
    ],
)
def test_arguments_may_be_unused_or_taken_together(app, taken):
    clicks = app.source("clicks", schema="user string, page string")
    app.operator(reads=clicks, name="a")(eval(f"lambda {taken}: None"))


def test_what_comes_before_the_columns_may_have_any_name(app):
    clicks = app.source("clicks", schema="user string, page string").by("user")

    def scored(model, counts, name, user, page):
        return model, counts, name, user, page

    def either(source, values):
        return source, values

    app.operator(reads=clicks, state={"n": 0}, record_id=True, set_up=dict)(scored)
    more = app.source("more", schema="a int")
    app.operator(reads=[clicks.plain, more])(either)


def test_what_was_refused_leaves_nothing_behind(app, lines):
    refusal(app.operator(reads=lines, emits="word string", max_processors=0), split)
    assert (list(app.streams), dict(app.operators)) == (["lines"], {})
    app.operator(reads=lines, emits="word string")(split)


async def slow(line):
    return line


async def slower(line):
    yield line


FUNCTIONS = {
    "not a function": (7, "7 is not a function; put @app.operator(…) before a def"),
    "no generator": (store, "but the function never yields"),
    "async": (slow, "it is async"),
    "async generator": (slower, "it is async"),
    "wrong arity": (two, "it takes (user, line), but is called with (line): missing"),
    "too few": (partial(split, "a"), "too many positional arguments"),
}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_functions_that_cannot_be_operators_are_refused(app, lines, function):
    given, problem = FUNCTIONS[function]
    message = refusal(app.operator(reads=lines, emits="word string", name="bad"), given)
    assert message.startswith("operators.bad: ")
    assert problem in message


def test_a_function_that_emits_nothing_must_not_yield(app, lines):
    message = refusal(app.operator(reads=lines), split)
    assert message.startswith("operators.split: the function yields, but emits= is not given")


def test_a_function_that_does_not_tell_its_arguments_is_taken(app, lines):
    assert app.operator(reads=lines, name="kept")(dict.fromkeys).emits == ()


@pytest.mark.parametrize(
    ("set_up", "problem"),
    [
        (7, "7 is not a function"),
        (slow, "it is async"),
        (store, "it takes (line), but is called with (nothing)"),
    ],
)
def test_set_up_is_called_without_arguments(app, lines, set_up, problem):
    message = refusal(app.operator(reads=lines, emits="a int", set_up=set_up), split)
    assert message.startswith(f"operators.split.set_up: {problem}")


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"servic_s": 1}, "servic_s: there is no such setting; write service_s"),
        ({"service_s": -1}, "service_s: -1 is negative"),
        ({"service_s": "1"}, "service_s: '1' is not a number"),
        ({"service_scv": None}, "service_scv: None is not a number"),
        ({"sends": -1}, "sends.split: -1 is negative"),
        ({"sends": {"words": 1}}, "sends: it does not write a stream 'words'; write split"),
        ({"min_processors": 0}, "min_processors: 0 is below 1"),
        ({"max_processors": 1.5}, "max_processors: 1.5 is not a whole number"),
        ({"min_processors": 3, "max_processors": 2}, "max_processors: 2 is below min_proc"),
        ({"time_limit_s": 0}, "time_limit_s: the limit is 0"),
        ({"time_limit_s": "5"}, "time_limit_s: '5' is not a number"),
        ({"records_per_transfer": 0}, "records_per_transfer: 0 is below 1"),
        ({"record_id": "yes"}, "record_id: 'yes' is neither True nor False; write True"),
        ({"on_error": "ignore"}, "on_error: 'ignore' is not known; write \"stop\""),
        ({"on_error": sj.OnError(retries=-1)}, "on_error.retries: -1 is below 1"),
    ],
)
def test_settings_that_cannot_be_are_refused(app, lines, settings, problem):
    message = refusal(app.operator(reads=lines, emits="word string", **settings), split)
    assert message.startswith(f"operators.split.{problem}")


def test_numbers_sent_name_the_stream_where_there_are_several_or_none(app, lines):
    emits = {"a": "x int", "b": "x int"}
    message = refusal(app.operator(reads=lines, emits=emits, sends=2), split)
    assert message.endswith('is one number for 2 streams; write {"a": 1, "b": 1}')
    assert "it emits nothing" in refusal(app.operator(reads=lines, sends=2), store)
    assert "it emits nothing" in refusal(app.operator(reads=lines, sends={"a": 2}), store)


def test_native_operators_have_no_functions_to_set(app, lines):
    message = refusal(
        app.project, "length", reads=lines, columns={"n": "1"}, on_error="dead_letter"
    )
    assert message.startswith("operators.length.on_error: there is no such setting")


@pytest.mark.parametrize(
    ("emits", "problem"),
    [
        ("word strng", "emits.split: at character 6"),
        ({}, "emits: it has no streams"),
        ({"a b": "x int"}, "emits: 'a b' is not a valid name"),
        ({"lines": "x int"}, "emits: a stream lines already exists"),
        (7, "emits.split: 7 is not a schema"),
    ],
)
def test_streams_that_cannot_be_written_are_refused(app, lines, emits, problem):
    message = refusal(app.operator(reads=lines, emits=emits), split)
    assert message.startswith(f"operators.split.{problem}")


def test_sources_are_not_written_to(app, lines):
    message = refusal(app.operator(reads=lines, emits=lines), split)
    assert message.startswith("operators.split.emits: lines is a source")


def test_streams_keep_their_names(app, lines):
    words = app.operator(reads=lines, emits="word string")(split)
    message = refusal(app.operator(reads=lines, emits={"b": words}, name="b"), split)
    assert "the stream split is given under the name 'b'; use its own name" in message


@pytest.mark.parametrize(
    ("reads", "problem"),
    [
        ([], "it reads nothing"),
        ("lines", "'lines' is not a stream"),
        (split, "is not a stream; pass what app.source"),
        (None, "None is not a stream"),
    ],
)
def test_streams_that_cannot_be_read_are_refused(app, reads, problem):
    message = refusal(app.operator(reads=reads, emits="word string"), split)
    assert message.startswith("operators.split.reads: ")
    assert problem in message


def test_streams_are_read_once_and_from_the_same_application(app, lines):
    message = refusal(app.operator(reads=[lines, lines.by("line")], emits="a int"), named)
    assert "it reads one stream twice" in message
    other = sj.App("other").source("texts", schema="line string")
    message = refusal(app.operator(reads=other, emits="a int"), split)
    assert "the stream texts does not belong to wordcount" in message


def test_keys_are_columns(lines):
    assert "there is no column 'word'; write one or more of line" in refusal(lines.by, "word")
    assert "no columns are named" in refusal(lines.by)


@pytest.mark.parametrize("name", ["", "a b", "ä", ".hidden", "x" * 101, None, 7])
def test_names_are_those_that_kafka_takes(name):
    assert "is not a valid name" in refusal(sj.App, name)


def test_names_occur_once(app, lines):
    app.operator(reads=lines, emits="word string")(split)
    assert "an operator with this name already exists" in refusal(
        app.operator(reads=lines, emits="a int"), split
    )
    assert "a stream lines already" in refusal(app.source, "lines", schema="a int")
    assert "a stream lines already" in refusal(
        app.project, "lines", reads=lines, columns={"n": "1"}
    )
    app.sink(lines)
    assert "a sink with this name already exists; give it another name" in refusal(
        app.sink, lines
    )
    app.sink(lines, name="copy")


def test_a_lambda_needs_a_name(app, lines):
    unnamed = lambda line: None  # noqa: ARG005, E731
    assert "'<lambda>' is not a valid name" in refusal(app.operator(reads=lines), unnamed)
    assert app.operator(reads=lines, name="kept")(unnamed).name == "kept"


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ({}, "columns: {} does not map"),
        ("length(line)", "columns: 'length(line)' does not map"),
        ({"n": " "}, "columns.n: ' ' is not a Spark SQL expression"),
        ({"n": 7}, "columns.n: 7 is not a Spark SQL expression"),
        ({"": "1"}, "columns: '' is not a valid column name"),
    ],
)
def test_expressions_are_text_by_column(app, lines, columns, problem):
    message = refusal(app.project, "length", reads=lines, columns=columns)
    assert message.startswith(f"operators.length.{problem}")


def test_groups_are_columns_that_there_are(app, lines):
    message = refusal(app.aggregate, "n", reads=lines, by="word", columns={"n": "count(*)"})
    assert "the stream lines has no column 'word'; write one or more of line" in message
    both = app.aggregate("n", reads=lines, by=["line"], columns={"n": "count(*)"})
    assert both.groups == ("line",)


def test_types_are_those_of_the_columns(app, lines):
    with pytest.raises(BadSchema, match="its columns are line, n, but emits= is n bigint"):
        app.aggregate("c", reads=lines, by="line", columns={"n": "count(*)"}, emits="n bigint")
    schema = sj.parse_schema("line string, n bigint")
    made = app.aggregate("c", reads=lines, by="line", columns={"n": "count(*)"}, emits=schema)
    assert made.stream.schema is schema


def test_an_application_hangs_together(app):
    assert refusal(app.check).startswith("sources: there is no source")
    lines = app.source("lines", schema="line string")
    assert refusal(app.check).startswith("sources.lines: no operator reads it")
    app.operator(reads=lines)(store)
    app.check()
    loose = app.stream("loose", schema="line string")
    assert refusal(app.check).startswith("streams.loose: no operator writes it")
    app.operator(reads=loose, emits=loose)(split)
    assert refusal(app.check).startswith("operators.split: no record ever reaches it")


def test_a_topic_that_is_named_must_be_there_unless_it_is_to_be_made(app):
    app.source("orders", schema="n int", topic="all-orders")
    app.source("tips", schema="n int", topic="all-tips", create=True)
    app.source("lines", schema="line string")
    assert app.required_topics == {"orders": "all-orders"}
    assert (app.topic("tips"), app.topic("lines")) == ("all-tips", f"{app.name}.lines")

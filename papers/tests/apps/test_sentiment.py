import json
from itertools import islice

import pytest

from apps.in_memory import InMemory, expected
from sojourn_papers.apps import sentiment
from sojourn_papers.apps.sentiment.lexicon import emoticon_valences, word_valences
from sojourn_papers.apps.sentiment.offline import answers


def tweet(text):
    return (json.dumps({"id": 7, "user": {"screen_name": "ann"}, "text": text}),)


def score_of(text):
    results = InMemory(sentiment.app).results("tweets", tweet(text))
    (score,) = (record[2] for sink, record in results if sink == "classify")
    return score


def same_as_offline(number):
    run = InMemory(sentiment.app)
    sinks = set()
    for record in islice(sentiment.app.samples["tweets"](3), number):
        results = run.results("tweets", record)
        assert results == expected(answers, "tweets", record)
        sinks |= {sink for sink, _ in results}
    assert sinks == set(sentiment.app.sinks)


@pytest.mark.usefixtures("no_data")
def test_results_of_made_up_tweets_are_those_worked_out_offline():
    same_as_offline(1000)


@pytest.mark.usefixtures("real_data")
def test_results_of_real_tweets_are_those_worked_out_offline():
    same_as_offline(1000)


@pytest.mark.usefixtures("real_data")
def test_afinn_is_read_whole_but_for_phrases():
    assert word_valences()["abandon"] == -2
    assert len(word_valences()) == 3382 - 30
    assert len(emoticon_valences()) == 96


@pytest.mark.usefixtures("no_data")
@pytest.mark.parametrize(
    ("text", "score"),
    [
        ("this is good", 3),
        ("this is GOOD, really good :)", 8),
        ("this is not good", -3),
        ("this isn't such a good day", -3),
        ("this is not what we call a good day", 3),
        ("the storm is bad &amp; sad", -5),
        ("i read it at http://example.org/good, by @happy", 0),
        ("what a #happy day", 3),
        ("a good-bad day is no day", 0),
    ],
)
def test_scores(text, score):
    assert score_of(text) == score
    assert ("classify", score) in [
        (sink, record[2])
        for sink, record in expected(answers, "tweets", tweet(text))
        if sink == "classify"
    ]


@pytest.mark.usefixtures("no_data")
@pytest.mark.parametrize("text", ["RT @bob: this is good", "Schönes Wetter", ""])
def test_retweets_and_other_languages_have_no_result(text):
    assert not InMemory(sentiment.app).results("tweets", tweet(text))


@pytest.mark.usefixtures("no_data")
def test_the_mood_of_an_author_is_the_sum_of_what_the_tweets_add():
    run = InMemory(sentiment.app)
    added = [
        record[1:]
        for text in ("this is good :)", "it is sad and terrible")
        for sink, record in run.results("tweets", tweet(text))
        if sink == "author_mood"
    ]
    assert [sum(column) for column in zip(*added, strict=True)] == [2, 4, 5, -5]


@pytest.mark.parametrize(
    "text", ["{", "[]", "5", '{"text": "no id"}', '{"id": 1, "text": null}']
)
def test_bad_tweets_are_dead_letters(text):
    run = InMemory(sentiment.app)
    assert not run.results("tweets", (text,))
    assert run.dead_letters == ([] if text == "[]" else [("parse", (text,))])


def test_it_is_a_tree_of_eleven_operators():
    operators = sentiment.app.operators.values()
    assert len(operators) == 11
    assert all(len(operator.reads) == 1 for operator in operators)

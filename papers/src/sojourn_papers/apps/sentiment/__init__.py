"""The Twitter sentiment analysis of D-Storm: eleven operators that form a tree.

Tweets arrive as JSON text. The trunk parses a tweet, selects, cleans, splits and scores it with
AFINN, a list of words with a valence from -5 to 5. One branch classifies the tweet and reports
extreme ones; another adds to the mood of its author; a third lists the words that made the
score. The tweets are those of members of the US Congress.
"""

import html
import json
import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import TypeAlias

import sojourn as sj
from sojourn_papers.apps.sentiment.lexicon import emoticon_valences, word_valences
from sojourn_papers.apps.sentiment.rules import ENGLISH, EXTREME, NEGATIONS, REACH
from sojourn_papers.apps.tweets import tweets

__all__ = [
    "alert",
    "app",
    "author_mood",
    "classify",
    "clean",
    "emoticons",
    "negate",
    "parse",
    "score",
    "scored_words",
    "select",
    "tokens",
]

Tweet: TypeAlias = tuple[int, str, str]
"""The id of a tweet, its author and its text."""

_TWEET = "tweet_id bigint, author string, text string"
_LINK = re.compile(r"https?://\S+")
_MENTION = re.compile(r"@\w+")
_WORD = re.compile(r"[a-z]+(?:['-][a-z]+)*")

app = sj.App("sentiment")
source = app.source(
    "tweets",
    schema="json string",
    samples=partial(tweets, "tweets/congress_tweets_160k.parquet"),
)


@app.operator(
    reads=source,
    emits="tweet_id bigint not null, author string not null, text string not null",
    service_s=4e-6,
    on_error="dead_letter",
)
def parse(tweet: str, /) -> Iterator[Tweet]:
    """Yield what is needed of a tweet; notices of deleted tweets have no text."""
    read = json.loads(tweet)
    if "text" in read:
        yield read["id"], read.get("user", {}).get("screen_name", ""), read["text"]


@app.operator(reads=parse, emits=_TWEET, service_s=9e-6, sends=0.7)
def select(tweet_id: int, author: str, text: str) -> Iterator[Tweet]:
    """Yield tweets in English that are not retweets."""
    words = _WORD.findall(text.lower())
    if not text.startswith("RT @") and not ENGLISH.isdisjoint(words):
        yield tweet_id, author, text


@app.operator(reads=select, emits=_TWEET, service_s=3e-6)
def clean(tweet_id: int, author: str, text: str) -> Iterator[Tweet]:
    """Yield the text without links and mentions, its entities decoded."""
    text = html.unescape(text).replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    yield tweet_id, author, _MENTION.sub(" ", _LINK.sub(" ", text))


@app.operator(
    reads=clean,
    emits=f"{_TWEET}, emoticons array<string>",
    set_up=emoticon_valences,
    service_s=7e-6,
)
def emoticons(
    valences: Mapping[str, int], tweet_id: int, author: str, text: str
) -> Iterator[tuple[int, str, str, list[str]]]:
    """Yield the text without its emoticons, and these."""
    pieces = text.split()
    found = [piece for piece in pieces if piece in valences]
    yield tweet_id, author, " ".join(p for p in pieces if p not in valences), found


@app.operator(
    reads=emoticons,
    emits="tweet_id bigint, author string, words array<string>, emoticons array<string>",
    service_s=9e-6,
)
def tokens(
    tweet_id: int, author: str, text: str, emoticons: list[str]
) -> Iterator[tuple[int, str, list[str], list[str]]]:
    """Yield the words of the text in small letters."""
    yield tweet_id, author, _WORD.findall(text.lower()), emoticons


@app.operator(
    reads=tokens,
    emits="tweet_id bigint, author string, words array<string>, negated array<boolean>, "
    "emoticons array<string>",
    service_s=6e-6,
)
def negate(
    tweet_id: int, author: str, words: list[str], emoticons: list[str]
) -> Iterator[tuple[int, str, list[str], list[bool], list[str]]]:
    """Yield for each word whether a negation is shortly before it."""
    negated, reach = [], 0
    for word in words:
        negated.append(reach > 0)
        reach = REACH if word in NEGATIONS or word.endswith("n't") else reach - 1
    yield tweet_id, author, words, negated, emoticons


def _valences() -> tuple[Mapping[str, int], Mapping[str, int]]:
    return word_valences(), emoticon_valences()


@app.operator(
    reads=negate,
    emits={
        "scores": "tweet_id bigint, author string, score int",
        "found": "author string, words array<string>, valences array<int>",
    },
    set_up=_valences,
    service_s=5e-6,
)
def score(
    valences: tuple[Mapping[str, int], Mapping[str, int]],
    tweet_id: int,
    author: str,
    words: list[str],
    negated: list[bool],
    emoticons: list[str],
) -> Iterator[tuple[str, tuple[object, ...]]]:
    """Yield the sum of valences, and the words and emoticons that have one."""
    of_words, of_emoticons = valences
    found = [
        (word, -of_words[word] if turned else of_words[word])
        for word, turned in zip(words, negated, strict=True)
        if word in of_words
    ]
    found += [(emoticon, of_emoticons[emoticon]) for emoticon in emoticons]
    yield "scores", (tweet_id, author, sum(valence for _, valence in found))
    yield "found", (author, [word for word, _ in found], [valence for _, valence in found])


@app.operator(
    reads=score["scores"],
    emits="tweet_id bigint, author string, score int, mood string",
    service_s=1e-6,
)
def classify(tweet_id: int, author: str, score: int) -> Iterator[tuple[int, str, int, str]]:
    """Yield the mood of a tweet: that of its score."""
    mood = "positive" if score > 0 else "negative" if score < 0 else "neutral"
    yield tweet_id, author, score, mood


@app.operator(
    reads=classify,
    emits="tweet_id bigint, author string, score int, mood string",
    service_s=1e-6,
    sends=0.14,
)
def alert(
    tweet_id: int, author: str, score: int, mood: str
) -> Iterator[tuple[int, str, int, str]]:
    """Yield the tweets with an extreme score."""
    if abs(score) >= EXTREME:
        yield tweet_id, author, score, mood


@app.operator(
    reads=score["found"],
    emits="author string, tweets int, words int, positive int, negative int",
    service_s=1e-6,
)
def author_mood(
    author: str, words: list[str], valences: list[int]
) -> Iterator[tuple[str, int, int, int, int]]:
    """Yield what a tweet adds to the numbers and sums of its author."""
    positive = sum(valence for valence in valences if valence > 0)
    yield author, 1, len(words), positive, sum(valences) - positive


@app.operator(
    reads=score["found"],
    emits="author string, word string, valence int",
    service_s=2e-6,
    sends=3.1,
)
def scored_words(
    author: str, words: list[str], valences: list[int]
) -> Iterator[tuple[str, str, int]]:
    """Yield each word that made the score."""
    for word, valence in zip(words, valences, strict=True):
        yield author, word, valence


for _last in (classify, alert, author_mood, scored_words):
    app.sink(_last)

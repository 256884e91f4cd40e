"""The results of the sentiment analysis, worked out in one go."""

import html
import json
import re
from collections.abc import Iterator
from itertools import dropwhile

from sojourn_papers.apps.catalogue import Record
from sojourn_papers.apps.sentiment.lexicon import emoticon_valences, word_valences
from sojourn_papers.apps.sentiment.rules import ENGLISH, EXTREME, NEGATIONS, REACH


def answers(_source: str, record: Record) -> Iterator[tuple[str, Record]]:
    """Yield the results of a tweet at each sink."""
    tweet = json.loads(record[0])
    text = tweet.get("text", "")
    if text[:4] == "RT @" or not ENGLISH & set(_words(text)):
        return
    author = tweet["user"]["screen_name"] if "user" in tweet else ""
    found = list(_found(text))
    score = sum(valence for _, valence in found)
    result = tweet["id"], author, score, ("neutral", "positive", "negative")[_sign(score)]
    yield "classify", result
    if not -EXTREME < score < EXTREME:
        yield "alert", result
    positive = sum(max(valence, 0) for _, valence in found)
    negative = sum(min(valence, 0) for _, valence in found)
    yield "author_mood", (author, 1, len(found), positive, negative)
    for word, valence in found:
        yield "scored_words", (author, word, valence)


def _found(text: str) -> Iterator[tuple[str, int]]:
    """Yield the words and emoticons that have a valence, with it."""
    of_words, of_emoticons = word_valences(), emoticon_valences()
    text = html.unescape(text).replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    text = " ".join(_before_link(piece) for piece in text.split())
    first, *others = text.split("@")
    pieces = " ".join([first, *map(_after_name, others)]).split()
    words = _words(" ".join(piece for piece in pieces if piece not in of_emoticons))
    for place, word in enumerate(words):
        if word in of_words:
            before = words[max(place - REACH, 0) : place]
            negated = any(each in NEGATIONS or each[-3:] == "n't" for each in before)
            yield word, of_words[word] * (-1 if negated else 1)
    for piece in pieces:
        if piece in of_emoticons:
            yield piece, of_emoticons[piece]


def _words(text: str) -> list[str]:
    """Return words: letters, with single hyphens and apostrophes between them."""
    pieces = re.split(r"[^a-z'-]+|['-]{2,}", text.lower())
    return [word for piece in pieces if (word := piece.strip("'-"))]


def _before_link(piece: str) -> str:
    return re.split("https?://(?=.)", piece, maxsplit=1)[0]


def _after_name(piece: str) -> str:
    """Return what follows the name at the beginning of *piece*."""
    return "".join(dropwhile(lambda sign: sign.isalnum() or sign == "_", piece))


def _sign(number: int) -> int:
    return (number > 0) - (number < 0)

"""AFINN: words and emoticons with their valence, from -5 to 5; a few where it is missing."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from sojourn_papers.apps.data import data_file

_WORDS = {
    "awesome": 4,
    "bad": -3,
    "disaster": -2,
    "fun": 4,
    "good": 3,
    "great": 3,
    "happy": 3,
    "sad": -2,
    "terrible": -3,
    "win": 4,
}
_EMOTICONS = {":)": 2, ":(": -2, ":D": 2, ";)": 2, ":|": -1}


def word_valences() -> Mapping[str, int]:
    """Return the valences of single words: phrases such as `not good` are left to negation."""
    path = data_file("lexicon/AFINN-en-165.txt")
    return _WORDS if path is None else _read(path)


def emoticon_valences() -> Mapping[str, int]:
    """Return the valences of emoticons."""
    path = data_file("lexicon/AFINN-emoticon-8.txt")
    return _EMOTICONS if path is None else _read(path)


@cache
def _read(path: Path) -> Mapping[str, int]:
    lines = path.read_text(encoding="utf-8").splitlines()
    pairs = (line.split("\t") for line in lines if line and " " not in line)
    return {word: int(valence) for word, valence in pairs}

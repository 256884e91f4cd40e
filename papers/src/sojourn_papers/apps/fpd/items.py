"""The items of a tweet, and sets of them."""

import re
from collections.abc import Iterator, Sequence
from itertools import combinations

SHORTEST, LONGEST = 4, 20
"""Letters of an item."""

# fmt: off
COMMON = frozenset((
    "about", "after", "also", "been", "before", "being", "could", "from", "have", "here",
    "into", "just", "like", "more", "most", "much", "must", "only", "other", "over", "should",
    "some", "such", "than", "that", "their", "them", "then", "there", "these", "they", "this",
    "those", "very", "were", "what", "when", "where", "which", "while", "will", "with",
    "would", "your",
))
# fmt: on
"""Words that are no items: they are in most texts."""

_NO_WORDS = re.compile(r"https?://\S+|@\w+")
_WORD = re.compile(r"[^\W\d_]+")


def items_of(text: str, most: int) -> list[str]:
    """Return the items of a tweet in alphabetical order: its first words, at *most* so many.

    Links, mentions, common words and those that are very short or long are left out.

    >>> items_of("RT @ann: Stay home, stay safe! https://cdc.gov/home", most=5)
    ['home', 'safe', 'stay']
    """
    found: dict[str, None] = {}
    for word in _WORD.findall(_NO_WORDS.sub(" ", text.lower())):
        if SHORTEST <= len(word) <= LONGEST and word not in COMMON:
            found[word] = None
            if len(found) == most:
                break
    return sorted(found)


def candidates(items: Sequence[str], largest: int) -> Iterator[str]:
    """Yield the sets of one to *largest* items, each as a text.

    >>> list(candidates(["home", "safe", "stay"], largest=2))
    ['home', 'safe', 'stay', 'home safe', 'home stay', 'safe stay']
    """
    for size in range(1, largest + 1):
        yield from map(" ".join, combinations(items, size))


def immediate_subsets(item_set: str) -> Iterator[str]:
    """Yield the sets that lack one item of *item_set*; none if it has no other.

    >>> list(immediate_subsets("home safe stay"))
    ['safe stay', 'home stay', 'home safe']
    >>> list(immediate_subsets("home"))
    []
    """
    items = item_set.split(" ")
    if len(items) > 1:
        for place in range(len(items)):
            yield " ".join(items[:place] + items[place + 1 :])

"""The maximal frequent item sets of a window, counted at once."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations

from sojourn_papers.apps.catalogue import Record, States, Tables
from sojourn_papers.apps.fpd.items import COMMON, LONGEST, SHORTEST
from sojourn_papers.apps.fpd.settings import Settings

_SIGNS = {"entering": 1, "leaving": -1}


def answers(_source: str, _record: Record) -> Iterator[tuple[str, Record]]:
    """Yield nothing: what is frequent depends on all tweets."""
    return iter(())


def rows(records: Iterable[tuple[str, Record]]) -> Tables:
    """Return the item sets that are maximal and frequent among tweets that have not left."""
    settings = Settings.of_environment()
    counts = _counted(records, settings)
    supersets = _frequent_supersets(counts, settings.threshold)
    return {
        "maximal": frozenset(
            (" ".join(items),)
            for items, n in counts.items()
            if n >= settings.threshold and not supersets[items]
        )
    }


def told(results: Mapping[str, Sequence[Record]]) -> Tables:
    """Return the item sets that are maximal by the changes at the sink: the last of each."""
    last: dict[str, tuple[int, bool]] = {}
    for item_set, maximal, change in results["report"]:
        last[item_set] = max((change, maximal), last.get(item_set, (0, False)))
    return {
        "maximal": frozenset((item_set,) for item_set, (_, maximal) in last.items() if maximal)
    }


def states(records: Iterable[tuple[str, Record]]) -> States:
    """Return what `detect` keeps of each item set in the end.

    That is nothing of sets that are in no tweet of the window.
    """
    settings = Settings.of_environment()
    counts = _counted(records, settings)
    supersets = _frequent_supersets(counts, settings.threshold)
    return {
        "detect": {
            (" ".join(items),): {
                "count": n,
                "frequent": n >= settings.threshold,
                "supersets": supersets[items],
            }
            for items, n in counts.items()
            if n or supersets[items]
        }
    }


def _counted(
    records: Iterable[tuple[str, Record]], settings: Settings
) -> Counter[tuple[str, ...]]:
    """Return in how many tweets of the window each item set is."""
    tweets: Counter[tuple[str, ...]] = Counter()
    for source, (text,) in records:
        tweets[_items(text, settings.items)] += _SIGNS[source]
    counts: Counter[tuple[str, ...]] = Counter()
    for items, n in tweets.items():
        for size in range(1, settings.largest + 1):
            for item_set in combinations(items, size):
                counts[item_set] += n
    return counts


def _frequent_supersets(
    counts: Mapping[tuple[str, ...], int], threshold: int
) -> Counter[tuple[str, ...]]:
    """Return how many frequent sets have one item more than a set, and all of its own."""
    supersets: Counter[tuple[str, ...]] = Counter()
    for items, n in counts.items():
        if n >= threshold and len(items) > 1:
            supersets.update(combinations(items, len(items) - 1))
    return supersets


def _items(tweet: str, most: int) -> tuple[str, ...]:
    """Return the first words of a tweet that are items, in alphabetical order."""
    text = json.loads(tweet).get("text", "").lower()
    pieces = (re.split("https?://(?=.)", piece, maxsplit=1)[0] for piece in text.split())
    words = re.split(r"[\W\d_]+", re.sub(r"@\w+", " ", " ".join(pieces)))
    items = [w for w in words if SHORTEST <= len(w) <= LONGEST and w not in COMMON]
    return tuple(sorted(list(dict.fromkeys(items))[:most]))

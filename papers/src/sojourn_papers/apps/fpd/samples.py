"""Tweets that enter a sliding window, and the same tweets when they leave it."""

from collections.abc import Iterator
from itertools import chain, repeat

from sojourn_papers.apps.fpd.settings import Settings
from sojourn_papers.apps.tweets import tweets

TWEETS = "tweets/congress_tweets_160k.parquet"
NOTHING = "{}"
"""What leaves while the window is not full yet: a record without a text."""


def entering(seed: int) -> Iterator[tuple[str]]:
    """Yield tweets without end."""
    return tweets(TWEETS, seed)


def leaving(seed: int) -> Iterator[tuple[str]]:
    """Yield what leaves when the next tweet enters: that of so many before as the window has.

    Both sources must be sent at the same rate.
    """
    window = Settings.of_environment().window
    return chain(repeat((NOTHING,), window), tweets(TWEETS, seed))

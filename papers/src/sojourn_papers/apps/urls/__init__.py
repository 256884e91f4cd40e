"""The URL converter of D-Storm: finds short links in tweets, and resolves them.

Tweets arrive as JSON text. `parse` takes the text out, `find` its short links, and `resolve`
asks an HTTP service where each leads, unless it has asked lately: few links are in many tweets.
The service runs on the same machine; the first processor that needs it starts it. Links are
those of a collection of tweets about crises; some lead to pages that clicks on bit.ly links are
known to have reached.
"""

import json
import re
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING

import sojourn as sj
from sojourn_papers.apps.tweets import tweets
from sojourn_papers.apps.urls.links import SHORTENERS

if TYPE_CHECKING:
    from sojourn_papers.apps.urls.resolver import Resolver

__all__ = ["app", "find", "parse", "resolve"]

# Collectors cut long tweets off with an ellipsis; what is left of a link leads nowhere.
_SHORT = re.compile(
    rf"https?://(?:{'|'.join(map(re.escape, SHORTENERS))})/[0-9A-Za-z]+(?![0-9A-Za-z…])"
)

app = sj.App("urls")
source = app.source(
    "tweets",
    schema="json string",
    samples=partial(tweets, "tweets/crisislex_t6_60k.parquet"),
)


@app.operator(
    reads=source,
    emits="tweet_id bigint not null, text string not null",
    service_s=2e-6,
    on_error="dead_letter",
)
def parse(tweet: str, /) -> Iterator[tuple[int, str]]:
    """Yield the text of a tweet; notices of deleted tweets have none."""
    read = json.loads(tweet)
    if "text" in read:
        yield read["id"], read["text"]


@app.operator(reads=parse, emits="tweet_id bigint, short string", service_s=1e-6, sends=0.31)
def find(tweet_id: int, text: str) -> Iterator[tuple[int, str]]:
    """Yield the short links in a text."""
    for short in _SHORT.findall(text):
        yield tweet_id, short


def _connect() -> "Iterator[Resolver]":
    from sojourn_papers.apps.urls.resolver import Resolver  # noqa: PLC0415 - it imports much
    from sojourn_papers.apps.urls.settings import Settings  # noqa: PLC0415

    with closing(Resolver(Settings.of_environment())) as resolver:
        yield resolver


@app.operator(
    reads=find,
    emits={"links": "tweet_id bigint, short string, long string, failure string"},
    set_up=_connect,
    service_s=0.06,
    on_error=sj.OnError(retries=3, then="dead_letter"),
    time_limit_s=60,
)
def resolve(
    resolver: "Resolver",
    tweet_id: int,
    short: str,
) -> Iterator[tuple[str, tuple[int, str, str | None, str | None]]]:
    """Yield where a short link leads, or why it leads nowhere."""
    long, failure = resolver.resolve(short)
    yield "links", (tweet_id, short, long, failure)


app.sink(resolve["links"])

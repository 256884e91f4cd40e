"""The results of the URL converter, without regular expressions and HTTP."""

import json
from collections.abc import Iterator
from itertools import takewhile

from sojourn_papers.apps.catalogue import Record
from sojourn_papers.apps.urls.links import MOST_REDIRECTS, is_short, known_links, target
from sojourn_papers.apps.urls.settings import Settings


def answers(_source: str, record: Record) -> Iterator[tuple[str, Record]]:
    """Yield the result of each short link in a tweet."""
    tweet = json.loads(record[0])
    for short in _short_links(tweet.get("text", "")):
        yield "links", (tweet["id"], short, *_resolved(short))


def _short_links(text: str) -> Iterator[str]:
    before, *pieces = text.split("://")
    for piece in pieces:
        scheme = next((each for each in ("https", "http") if before.endswith(each)), None)
        host, _, rest = piece.partition("/")
        code = "".join(takewhile(lambda sign: sign.isascii() and sign.isalnum(), rest))
        if scheme and is_short(f"{scheme}://{host}/{code}") and rest[len(code) :][:1] != "…":
            yield f"{scheme}://{host}/{code}"
        before = piece


def _resolved(short: str) -> tuple[str | None, str | None]:
    url: str | None = short
    for _ in range(MOST_REDIRECTS):
        url = target(_http(url or ""), known_links(), Settings.of_environment().dead)
        if url is None:
            return None, "404 Not Found"
        if not is_short(url):
            return url, None
    return None, f"more than {MOST_REDIRECTS} redirects"


def _http(url: str) -> str:
    """Return the link by which the service knows it: the scheme does not matter."""
    return f"http://{url.partition('://')[2]}"

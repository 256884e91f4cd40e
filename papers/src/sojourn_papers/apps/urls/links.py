"""Where short links lead: what is known of bit.ly, and what is made up for all others."""

import gzip
import json
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path
from string import punctuation
from urllib.parse import quote

from sojourn_papers.apps.data import data_file

SHORTENERS = (
    "t.co",
    "bit.ly",
    "bitly.com",
    "j.mp",
    "1.usa.gov",
    "go.nasa.gov",
    "on.doi.gov",
    "ow.ly",
    "goo.gl",
    "tinyurl.com",
    "youtu.be",
    "trib.al",
)
"""The hosts of short links."""

MOST_REDIRECTS = 5
"""A link that leads on more often is given up."""

CLICKS = "tweets/bitly_usagov_clicks.json.gz"
"""The data file of clicks."""

_TO_KNOWN = 0.25
_MADE_UP = {
    f"http://bit.ly/{number:06x}": f"https://example.org/known/{number}"
    for number in range(100)
}


def known_links() -> Mapping[str, str]:
    """Return the pages of known links: of clicks on bit.ly, made up where these are missing."""
    path = data_file(CLICKS)
    return _MADE_UP if path is None else _clicked(path)


@cache
def _clicked(path: Path) -> Mapping[str, str]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        clicks = [click for click in map(json.loads, lines) if "u" in click]
    # some have blanks and other signs that a header cannot have
    return {
        f"http://{click['hh']}/{click['h']}": quote(click["u"], safe=punctuation)
        for click in clicks
    }


def is_short(url: str) -> bool:
    """Tell whether a link is one of a shortener.

    >>> is_short("https://t.co/TPB2Con5aj"), is_short("https://example.org/t.co/a")
    (True, False)
    """
    _, _, rest = url.partition("://")
    host, _, code = rest.partition("/")
    return host in SHORTENERS and code.isascii() and code.isalnum()


def share(purpose: str, url: str) -> float:
    """Return a number from 0 to 1, always the same for a link and a purpose."""
    digest = sha256(f"{purpose} {url}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def target(short: str, known: Mapping[str, str], dead: float) -> str | None:
    """Return where a link leads, None if it is dead.

    Of the links that are not *known*, the part *dead* leads nowhere, a quarter to a known
    link, and the others to a page of example.org.
    """
    if short in known:
        return known[short]
    if share("dead", short) < dead:
        return None
    if share("on", short) < _TO_KNOWN:
        return list(known)[int(share("which", short) * len(known))]
    return f"https://example.org/{sha256(short.encode()).hexdigest()[:16]}"

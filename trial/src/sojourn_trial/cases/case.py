"""The findings of a hard case, and constants that the cases share."""

import json
from dataclasses import dataclass

BATCH_S = 5.0
PATIENCE_S = 300.0


@dataclass(frozen=True)
class Found:
    """The findings of a case."""

    figures: list
    """Lines to print."""
    broken: list
    """The rules that do not hold."""


def held(figures, rules):
    """Return the figures, with the texts of the *rules* that do not hold.

    >>> held(["3 lost"], {"nothing is lost": False, "it did not stop": True}).broken
    ['nothing is lost']
    """
    return Found(figures, [text for text, holds in rules.items() if not holds])


def rows(payloads):
    """Return the values of JSON records as tuples."""
    return [tuple(json.loads(payload).values()) for payload in payloads]

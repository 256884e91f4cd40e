"""What a hard case has shown, and what the cases of `spark_cases.py` share."""

import json
from dataclasses import dataclass

BATCH_S = 5.0
PATIENCE_S = 300.0


@dataclass(frozen=True)
class Found:
    """What a case has shown: *figures* to print, and what of it is *broken*."""

    figures: list
    broken: list


def held(figures, rules):
    """Return the figures with those of the *rules*, by what they say, that do not hold.

    >>> held(["3 lost"], {"nothing is lost": False, "it did not stop": True}).broken
    ['nothing is lost']
    """
    return Found(figures, [text for text, holds in rules.items() if not holds])


def rows(payloads):
    """Return the columns of records in JSON."""
    return [tuple(json.loads(payload).values()) for payload in payloads]

"""Rules: which entries are of interest, and why."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from sojourn_papers.apps.logstream.entry import Entry


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A kind of entry. A level or component of None is any; the pattern is searched for."""

    name: str
    level: str | None = None
    component: str | None = None
    pattern: str = ""

    def applies(self, entry: Entry) -> bool:
        """Tell whether *entry* is of this kind."""
        return (
            self.level in (None, entry.level)
            and self.component in (None, entry.component)
            and re.search(self.pattern, entry.message) is not None
        )


RULES = (
    Rule(name="unparsed", level="", component=""),
    Rule(
        name="missing-file",
        level="error",
        component="httpd",
        pattern="File does not exist|script not found",
    ),
    Rule(
        name="forbidden",
        level="error",
        component="httpd",
        pattern="forbidden by rule|Access denied|Attempt to serve directory",
    ),
    Rule(
        name="bad-request",
        level="error",
        component="httpd",
        pattern="Invalid (URI|method)|request failed|without hostname",
    ),
    Rule(name="other-error", level="error"),
    Rule(name="out-of-memory", component="kernel", pattern="Out of Memory"),
    Rule(name="login-failed", pattern="authentication failure|user unknown"),
    Rule(name="connection", component="ftpd", pattern="connection from"),
    Rule(name="abnormal-exit", pattern="exited abnormally|did not exit"),
)
"""Of the rules that apply to an entry the first one counts."""


def first_rule(rules: Iterable[Rule], entry: Entry) -> str | None:
    """Return the name of the first rule that applies; None if the entry is of no interest.

    >>> first_rule(RULES, Entry(component="kernel", message="Out of Memory: Killed process 9"))
    'out-of-memory'
    >>> first_rule(RULES, Entry(component="kernel", message="klogd 1.4.1 started"))
    """
    return next((rule.name for rule in rules if rule.applies(entry)), None)

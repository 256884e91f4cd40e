"""Untrusted text, escaped for terminals, JSON and error messages.

A terminal executes control characters in records, names and errors, so output that may contain
text from outside must go through one of these functions.
"""

import json
import re
from reprlib import Repr

# Newlines only separate values: newlines in strings are escaped already.
_OTHERS = re.compile(r"[^ -~\n]")
# reprlib limits the depth: a list may contain itself, or be nested very deeply.
_SHORT = Repr()
_SHORT.maxlevel, _SHORT.maxlist, _SHORT.maxdict = 3, 20, 20
_SHORT.maxstring = _SHORT.maxlong = _SHORT.maxother = 5000


def escaped(text: str) -> str:
    r"""Return *text* with unprintable characters escaped.

    >>> print(escaped("a\x1b[2Jb"))
    a\x1b[2Jb
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def escaped_lines(text: str) -> str:
    r"""Return *text* with unprintable characters escaped, except newlines.

    >>> print(escaped_lines("ValueError: \x1b[2J\n  line 7"))
    ValueError: \x1b[2J
      line 7
    """
    return "\n".join(escaped(line) for line in text.expandtabs().split("\n"))


def escaped_json(text: str) -> str:
    r"""Return an equal JSON document in which strings have no unprintable character.

    >>> print(escaped_json('{"said": "\x9b2J"}'))
    {"said": "\u009b2J"}
    """
    return _OTHERS.sub(lambda each: _escaped_in_json(each[0]), text)


def printable(text: str, keep: str = "") -> str:
    """Return *text* with unprintable characters replaced by spaces, except those in *keep*."""
    return "".join(c if c.isprintable() or c in keep else " " for c in text)


def shown(value: object) -> str:
    """Return the repr of *value* for an error message, at most 60 characters."""
    try:
        text = _SHORT.repr(value)
    except ValueError:  # an integer with more digits than sys.get_int_max_str_digits()
        text = "a number of thousands of digits"
    return text if len(text) <= 60 else text[:57] + "..."


def _escaped_in_json(letter: str) -> str:
    return letter if letter.isprintable() else json.dumps(letter)[1:-1]

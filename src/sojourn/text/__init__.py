"""Text and values from outside, made fit for a terminal, for JSON and for messages."""

import json
import re
from reprlib import Repr

__all__ = ["escaped", "escaped_json", "escaped_lines", "printable", "shown"]

# Newlines are between values: those in text are escaped already.
_OTHERS = re.compile(r"[^ -~\n]")
# A list may contain itself, or be nested very deeply.
_SHORT = Repr()
_SHORT.maxlevel, _SHORT.maxlist, _SHORT.maxdict = 3, 20, 20
_SHORT.maxstring = _SHORT.maxlong = _SHORT.maxother = 5000


def escaped(text: str) -> str:
    r"""Return *text* with unprintable characters escaped: a terminal may execute them.

    >>> print(escaped("a\x1b[2Jb"))
    a\x1b[2Jb
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def escaped_lines(text: str) -> str:
    r"""Return *text* with unprintable characters escaped, but for its newlines.

    >>> print(escaped_lines("ValueError: \x1b[2J\n  line 7"))
    ValueError: \x1b[2J
      line 7
    """
    return "\n".join(escaped(line) for line in text.expandtabs().split("\n"))


def escaped_json(text: str) -> str:
    r"""Return a JSON document that means the same and has no unprintable character in text.

    >>> print(escaped_json('{"said": "\x9b2J"}'))
    {"said": "\u009b2J"}
    """
    return _OTHERS.sub(lambda each: _escaped_in_json(each[0]), text)


def printable(text: str, keep: str = "") -> str:
    """Return *text* with spaces for unprintable characters, which a terminal may execute."""
    return "".join(c if c.isprintable() or c in keep else " " for c in text)


def shown(value: object) -> str:
    """Return *value* as it is shown in an error, shortened."""
    try:
        text = _SHORT.repr(value)
    except ValueError:  # an integer of more digits than Python is willing to print
        text = "a number of thousands of digits"
    return text if len(text) <= 60 else text[:57] + "..."


def _escaped_in_json(letter: str) -> str:
    return letter if letter.isprintable() else json.dumps(letter)[1:-1]

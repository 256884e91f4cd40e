"""Escaping of text that is not ours, before it is printed."""

import json
import re

__all__ = ["escaped", "escaped_json", "escaped_lines"]

# Newlines are between values: those in text are escaped already.
_OTHERS = re.compile(r"[^ -~\n]")


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


def _escaped_in_json(letter: str) -> str:
    return letter if letter.isprintable() else json.dumps(letter)[1:-1]

"""Escaping of text that is not ours, before it is printed."""

__all__ = ["escaped"]


def escaped(text: str) -> str:
    r"""Return *text* with unprintable characters escaped: a terminal may execute them.

    >>> print(escaped("a\x1b[2Jb"))
    a\x1b[2Jb
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)

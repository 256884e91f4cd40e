"""Text of strangers, as it may be shown."""

__all__ = ["escaped"]


def escaped(text: str) -> str:
    r"""Return *text* with all escaped that a terminal cannot show, or would obey.

    >>> print(escaped("a\x1b[2Jb"))
    a\x1b[2Jb
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)

"""Terms: what an entry is found by."""

import re

# Database indexes have a limit of their own, which is far above this.
_SHORTEST, _LONGEST = 3, 64
_NAME = re.compile(r"[a-z0-9._-]+")


def terms(message: str) -> list[str]:
    """Return the terms of a message, each once: names, numbers, addresses of 3 to 64 letters.

    >>> terms("File does not exist: /var/www/file.html.")
    ['does', 'exist', 'file', 'file.html', 'not', 'var', 'www']
    """
    names = {name.strip("._-") for name in _NAME.findall(message.lower())}
    return sorted(name for name in names if _SHORTEST <= len(name) <= _LONGEST)

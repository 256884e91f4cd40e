"""What a word is."""

import re
from collections.abc import Iterator

LONGEST = 64
"""Letters of a word at most: what is longer is none, and no database has to index it."""

_TYPOGRAPHIC = "\N{RIGHT SINGLE QUOTATION MARK}"
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")


def words(line: str) -> Iterator[str]:
    """Yield the words of a line in lower case: letters and digits, with apostrophes inside.

    >>> list(words("'Twas Moby-Dick; it isn't 1851_"))
    ['twas', 'moby', 'dick', 'it', "isn't", '1851']
    """
    for word in _WORD.findall(line.lower().replace(_TYPOGRAPHIC, "'")):
        if len(word) <= LONGEST:
            yield word

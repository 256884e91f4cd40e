"""Lines for the word count: of "War and Peace", or of made-up words.

Made-up lines have 11 words on average, as in the novel, and the r-th most frequent word of
5,000 comes in proportion to 1/r: Zipf's law, which real texts follow.
"""

from collections.abc import Iterator
from itertools import accumulate
from random import Random

from sojourn_papers.apps.data import data_file
from sojourn_papers.apps.text_lines import endless, read_lines

NOVEL = "text/war_and_peace_pg2600.txt.gz"

_DISTINCT = 5_000
_WORDS_OF_A_LINE = (7, 15)
_CONSONANTS, _VOWELS = "bdfgklmnprstvz", "aeiou"
_SYLLABLES = [consonant + vowel for consonant in _CONSONANTS for vowel in _VOWELS]


def samples(seed: int) -> Iterator[tuple[str]]:
    """Yield lines without end."""
    novel = data_file(NOVEL)
    for line in made_up(seed) if novel is None else endless(read_lines(novel), seed):
        yield (line,)


def made_up(seed: int) -> Iterator[str]:
    """Yield lines of words that are drawn by Zipf's law."""
    random = Random(seed)  # noqa: S311 - samples
    vocabulary = [_word(rank) for rank in range(_DISTINCT)]
    shares = list(accumulate(1 / rank for rank in range(1, _DISTINCT + 1)))
    while True:
        number = random.randint(*_WORDS_OF_A_LINE)
        yield " ".join(random.choices(vocabulary, cum_weights=shares, k=number))


def _word(rank: int) -> str:
    """Return the word of a rank: frequent words are short.

    >>> _word(0), _word(70), _word(4_999)
    ('ba', 'baba', 'lubaba')
    """
    word = ""
    while True:
        rank, syllable = divmod(rank, len(_SYLLABLES))
        word += _SYLLABLES[syllable]
        if rank == 0:
            return word
        rank -= 1

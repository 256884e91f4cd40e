"""What the analysis goes by, besides the valences."""

EXTREME = 8
"""A score so far from 0 is reported."""

REACH = 3
"""So many words after a negation have their valence turned round."""

NEGATIONS = frozenset(("not", "no", "never", "none", "nobody", "nothing", "cannot", "without"))
"""Negations; all words in n't are, too."""

# fmt: off
ENGLISH = frozenset((
    "a", "about", "and", "are", "as", "at", "be", "but", "by", "for", "from", "have", "he", "i",
    "if", "in", "is", "it", "just", "my", "not", "of", "on", "or", "our", "that", "the", "they",
    "this", "to", "was", "we", "what", "who", "will", "with", "you", "your",
))
# fmt: on
"""A tweet with one of these words is taken for English."""

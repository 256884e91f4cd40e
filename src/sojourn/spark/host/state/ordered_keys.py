"""Keys in order, to which others are added often, and of which ranges are read seldom."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator
from itertools import islice

__all__ = ["OrderedKeys"]

# Short enough that making room in a block takes less than finding the place.
_LONGEST = 1000


class OrderedKeys:
    """Each key once, in sorted blocks: adding one takes microseconds with a million of them.

    >>> keys = OrderedKeys(["b", "d", "a"])
    >>> keys.add("c")
    >>> list(keys.between("b", "d"))
    ['b', 'c']
    """

    def __init__(self, keys: Iterable[str] = (), *, longest: int = _LONGEST) -> None:
        self._longest, ordered = longest, sorted(keys)
        self._blocks = [
            ordered[at : at + longest] for at in range(0, len(ordered), longest)
        ] or [[]]
        # no key of a block is before its first; of the first block, none at all
        self._firsts = ["", *(block[0] for block in self._blocks[1:])]

    def add(self, key: str) -> None:
        """Add a key that is not there yet."""
        at = bisect_right(self._firsts, key) - 1
        block = self._blocks[at]
        insort(block, key)
        if len(block) > self._longest:
            half = len(block) // 2
            self._blocks.insert(at + 1, block[half:])
            self._firsts.insert(at + 1, block[half])
            del block[half:]

    def between(self, start: str, end: str) -> Iterator[str]:
        """Yield the keys from *start* up to *end*, in order."""
        at = bisect_right(self._firsts, start) - 1
        for block in islice(self._blocks, at, None):
            for key in islice(block, bisect_left(block, start), None):
                if key >= end:
                    return
                yield key

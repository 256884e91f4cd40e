"""One queue for all processors of an operator, with each key on one processor at a time.

Idle processors take records in order of arrival. A record whose key is in service waits until
that is done, and blocks no record of another key.

Three places hold the records that wait: *fresh* has those not looked at since they arrived; a
record whose key is in service moves *behind* that key; once the key is free, the first behind
it moves to *next*, a heap by number. A record in *next* arrived before most in *fresh*, so the
lower number of the two fronts is taken.
"""

from bisect import insort
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, field
from heapq import heappop, heappush

from sojourn.spark.host.batch.cut import OpenRecord


@dataclass(slots=True)
class _Key:
    """A key with records in service, or with one in the heap of those to take next."""

    in_service: int = 0
    behind: deque[OpenRecord] = field(default_factory=deque)
    """Other records of the key, in order of arrival."""


class KeyedQueue:
    """Records in order of arrival, that is, by number; each operation is about O(1).

    A record that was taken is later released, or given back to its place in the order. A
    record whose number is in *alone* is taken without others; the caller may change that set.

    >>> from types import SimpleNamespace
    >>> queue = KeyedQueue()
    >>> for number, key in enumerate("aab"):
    ...     queue.put(SimpleNamespace(number=number, key=key))
    >>> (first,), (second,) = queue.take(1), queue.take(1)
    >>> first.key, second.key, queue.take(1), len(queue)
    ('a', 'b', [], 1)
    >>> queue.release(first)
    >>> [item.number for item in queue.take(1)]
    [1]
    """

    def __init__(self, alone: Collection[int] = ()) -> None:
        self._alone = alone
        self._length = 0
        self.behind = 0
        """Number of records known to wait for their key, not for a processor."""
        self._fresh: deque[OpenRecord] = deque()  # whose keys were not checked yet
        self._next: list[tuple[int, OpenRecord]] = []  # a heap of records that may be taken
        self._keys: dict[str, _Key] = {}

    def __len__(self) -> int:
        return self._length

    def put(self, item: OpenRecord) -> None:
        self._fresh.append(item)
        self._length += 1

    def take(self, most: int) -> list[OpenRecord]:
        """Take the next records for one processor, in order, at most *most*.

        Several may have the same key. The list is empty if all records wait for their key.
        """
        taken: list[OpenRecord] = []
        own: set[str] = set()
        while len(taken) < most and (item := self._popped(own)) is not None:
            if taken and item.number in self._alone:
                self.give_back([item])
                break
            taken.append(item)
            if item.number in self._alone:
                break
            if item.key is not None:
                own.add(item.key)
                taken += self._served_behind(item.key, most - len(taken))
        return taken

    def release(self, item: OpenRecord) -> None:
        """Mark *item* as done, so that the next record of its key can be taken."""
        if item.key is not None:
            self._keys[item.key].in_service -= 1
            self._settle(item.key)

    def give_back(self, items: list[OpenRecord]) -> None:
        """Return *items* to their places in the order."""
        for item in items:
            self._length += 1
            if item.key is None:
                heappush(self._next, (item.number, item))
            else:
                served = self._keys[item.key]
                served.in_service -= 1
                self.behind += 1
                insort(served.behind, item, key=lambda other: other.number)
        for key in {item.key for item in items if item.key is not None}:
            self._settle(key)

    def _popped(self, own: set[str]) -> OpenRecord | None:
        """Take the first record whose key is free; keys in *own* are on the same processor."""
        while self._next or self._fresh:
            if self._next and not (self._fresh and self._fresh[0].number < self._next[0][0]):
                return self._serve(heappop(self._next)[1])
            item = self._fresh.popleft()
            served = None if item.key is None else self._keys.get(item.key)
            # A key on this same processor does not block, unless earlier records are behind.
            if served is None or (item.key in own and not served.behind):
                return self._serve(item)
            self.behind += 1
            served.behind.append(item)
        return None

    def _served_behind(self, key: str, most: int) -> list[OpenRecord]:
        """Take more records of a key that was just taken for the same processor."""
        served: list[OpenRecord] = []
        behind = self._keys[key].behind
        while behind and behind[0].number not in self._alone and len(served) < most:
            self.behind -= 1
            served.append(self._serve(behind.popleft()))
        return served

    def _serve(self, item: OpenRecord) -> OpenRecord:
        self._length -= 1
        if item.key is not None:
            self._keys.setdefault(item.key, _Key()).in_service += 1
        return item

    def _settle(self, key: str) -> None:
        """Move the next record of a key to the heap, once none of the key is in service."""
        served = self._keys[key]
        if served.in_service:
            return
        if served.behind:
            self.behind -= 1
            first = served.behind.popleft()
            heappush(self._next, (first.number, first))
        else:
            del self._keys[key]

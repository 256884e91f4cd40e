"""Keyed state of a part's operators, consistent with its cuts.

It has layers: the changes since the last cut, the changes of each cut before that, and below
them a store on disk. A cut names the layers that are not in the store yet, so that state, open
records and offsets are of the same moment. Only committed changes are merged into the store,
so the store is never ahead of the cut that a part resumes from.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Protocol, TypeAlias

from sojourn.errors import BadFile, EngineError
from sojourn.files.durable_file import RESTORE
from sojourn.spark.host.batch.cut import CutId

Change: TypeAlias = tuple[str, str, bytes]
"""Operator, key and new state; an empty state removes the key."""

Delta: TypeAlias = Mapping[str, Mapping[str, bytes]]
"""States that have changed, by operator and key; an empty one was removed."""

# Keys in a block: few enough that an insertion takes less time than finding its place.
_LONGEST = 1000


class OrderedKeys:
    """A sorted set of keys, in blocks: an insertion takes microseconds at a million keys.

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
        # Lower bounds of the blocks; that of the first block is below all keys.
        self._firsts = ["", *(block[0] for block in self._blocks[1:])]

    def add(self, key: str) -> None:
        """Add a key that is not in the set."""
        at = bisect_right(self._firsts, key) - 1
        block = self._blocks[at]
        insort(block, key)
        if len(block) > self._longest:
            half = len(block) // 2
            self._blocks.insert(at + 1, block[half:])
            self._firsts.insert(at + 1, block[half])
            del block[half:]

    def between(self, start: str, end: str) -> Iterator[str]:
        """Yield the keys from *start* up to and without *end*, in order."""
        at = bisect_right(self._firsts, start) - 1
        for block in islice(self._blocks, at, None):
            for key in islice(block, bisect_left(block, start), None):
                if key >= end:
                    return
                yield key


class StateStore(Protocol):
    """States on disk: a store up to a committed batch, and the changes of later cuts."""

    def merged(self) -> int:
        """Return the last batch whose changes are in the store; -1 if none is."""

    def look_up(self, operator: str, key: str) -> bytes:
        """Return a state of the store; empty if there is none."""

    def ordered(
        self, operator: str, start: str, end: str, most: int
    ) -> list[tuple[str, bytes]]:
        """Return at most *most* states of keys from *start* up to *end*, in order.

        Only for operators for which `is_ordered` is true.
        """

    def read_delta(self, cut: CutId) -> Delta:
        """Return the changes of a cut. Raise `FileNotFoundError` if they were removed."""


@dataclass(frozen=True, slots=True)
class MergeState:
    """Merge committed changes into the store, then call `KeyedState.merged`."""

    upto: int
    """The last committed batch."""
    cuts: Sequence[tuple[CutId, Delta]]
    """The changes of each cut, in order; those that the store has are skipped."""


@dataclass(frozen=True, slots=True)
class StateMoment:
    """A snapshot of all states of a part on disk, unaffected by concurrent writes."""

    changed: Delta
    """Changes that are not in the store; they override it."""
    merged: int
    """The last batch whose changes are in the store."""
    stored: Callable[[str], Iterable[tuple[str, bytes]]]
    """Returns the keys and states of an operator in the store."""

    def states(self, operator: str) -> Iterator[tuple[str, bytes]]:
        """Yield the keys and states of an operator.

        >>> stored = [("a", b"1"), ("b", b"1"), ("c", b"1")]
        >>> moment = StateMoment({"n": {"a": b"2", "b": b""}}, 3, lambda _: stored)
        >>> list(moment.states("n"))
        [('a', b'2'), ('c', b'1')]
        """
        changed = dict(self.changed.get(operator, {}))
        for key, state in self.stored(operator):
            if found := changed.pop(key, state):
                yield key, found
        for key, state in changed.items():
            if state:
                yield key, state


def is_ordered(operator: str) -> bool:
    """Return whether keys are kept in order: a schedule's are, an operator's are not.

    >>> is_ordered("count"), is_ordered("count@reminders")
    (False, True)
    """
    return "@" in operator


@dataclass(slots=True)
class _Layer:
    """The changes of a cut, or those since the last one."""

    states: dict[str, dict[str, bytes]] = field(default_factory=dict)
    order: dict[str, OrderedKeys] = field(default_factory=dict)
    """The keys of ordered names."""

    def change(self, operator: str, key: str, state: bytes) -> None:
        states = self.states.get(operator)
        if states is None:
            states = self.states[operator] = {}
        if is_ordered(operator) and key not in states:
            self.order.setdefault(operator, OrderedKeys()).add(key)
        states[key] = state

    def of(self, operator: str, key: str) -> bytes | None:
        states = self.states.get(operator)
        return None if states is None else states.get(key)

    def between(self, operator: str, start: str, end: str, most: int) -> list[str]:
        """Return the first keys from *start* up to *end*, at most *most*."""
        order = self.order.get(operator)
        return [] if order is None else list(islice(order.between(start, end), most))


def _layer(delta: Delta) -> _Layer:
    return _Layer(
        {operator: dict(states) for operator, states in delta.items()},
        {name: OrderedKeys(states) for name, states in delta.items() if is_ordered(name)},
    )


class KeyedState:
    """The state of every key of a part's operators."""

    def __init__(self, store: StateStore) -> None:
        self._store = store
        self._changed = _Layer()
        self._layers: list[tuple[CutId, _Layer]] = []  # of cuts, the oldest first
        self._merging = False

    def of(self, operator: str, key: str) -> bytes:
        """Return the state of a key; empty if it has none."""
        if (found := self._changed.of(operator, key)) is not None:
            return found
        for _, layer in reversed(self._layers):
            if (found := layer.of(operator, key)) is not None:
                return found
        return self._store.look_up(operator, key)

    def ordered(
        self, operator: str, start: str, end: str, *, most: int
    ) -> tuple[list[tuple[str, bytes]], str]:
        """Return states of keys from *start* on, in order, and the key up to which they reach.

        That is *end*, unless the store or a layer has *most* keys before it.
        """
        # Each source returns a complete range only up to its last key, so the result ends at
        # the lowest of these.
        stored = self._store.ordered(operator, start, end, most)
        if len(stored) == most:
            end = f"{stored[-1][0]}\0"
        found = dict(stored)
        for layer in (*(layer for _, layer in self._layers), self._changed):
            keys = layer.between(operator, start, end, most)
            if len(keys) == most:
                end = f"{keys[-1]}\0"
            found |= {key: layer.states[operator][key] for key in keys}
        return sorted((key, state) for key, state in found.items() if state and key < end), end

    def change(self, operator: str, key: str, state: bytes) -> None:
        """Set the state of a key; an empty one removes it."""
        self._changed.change(operator, key, state)

    def cut(self, cut: CutId) -> tuple[tuple[CutId, ...], Delta]:
        """Make the changes since the last cut a layer of this one.

        Return the cuts whose changes are not in the store, and the changes of this cut.
        """
        changed, self._changed = self._changed, _Layer()
        if changed.states:
            self._layers.append((cut, changed))
        return tuple(known for known, _ in self._layers), changed.states

    def restore(self, cuts: Iterable[CutId], *, batch: int | None = None) -> None:
        """Restore the state of a cut of *batch*, with the layers of *cuts*.

        Raise `EngineError` if the store already has the states of a later batch.
        """
        self._changed, self._layers = _Layer(), []
        if batch is not None and (merged := self._store.merged()) > batch:
            raise EngineError(
                f"its keyed state is at batch {merged}, but Spark's checkpoint is at batch "
                f"{batch}; {RESTORE}"
            )
        for cut in cuts:
            if cut.batch <= self._store.merged():
                continue
            try:
                self._layers.append((cut, _layer(self._store.read_delta(cut))))
            except FileNotFoundError as error:
                # Another host that is still alive may have merged it just now.
                if cut.batch > self._store.merged():
                    raise BadFile(str(error.filename), "is missing", RESTORE) from error
        if self._layers:  # the other host may also have merged layers that were read above
            merged = self._store.merged()
            self._layers = [(cut, layer) for cut, layer in self._layers if cut.batch > merged]

    def committed(self, batch: int) -> list[MergeState]:
        """Return the merge to make once the cut of a batch is committed, one at a time."""
        ready = [(cut, layer.states) for cut, layer in self._layers if cut.batch <= batch]
        if self._merging or not ready:
            return []
        self._merging = True
        return [MergeState(batch, ready)]

    def merged(self, upto: int) -> None:
        """Drop the layers up to a batch, which the store has now."""
        self._merging = False
        self._layers = [(cut, layer) for cut, layer in self._layers if cut.batch > upto]

"""What the functions of a part keep for each key, as of one moment.

It is kept in layers: what has changed since the last cut, what had changed by each cut before
that, and below them a store on disk. A cut names the layers that are not in the store yet, so
that state, open records and offsets are of the same moment. Only what Spark has committed is
merged into the store: whatever a part goes back to, the store is never ahead of it.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Protocol, TypeAlias

from sojourn.errors import BadFile, EngineError
from sojourn.files.checked_file import RESTORE
from sojourn.spark.host.batch.cut import CutId

__all__ = [
    "Change",
    "Delta",
    "KeyedState",
    "MergeState",
    "OrderedKeys",
    "StateStore",
    "is_ordered",
]

Change: TypeAlias = tuple[str, str, bytes]
"""The state that a key of an operator has from now on; empty if it has none any more."""

Delta: TypeAlias = Mapping[str, Mapping[str, bytes]]
"""The states that have changed, by operator and key; empty where there is none any more."""

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


class StateStore(Protocol):
    """States on disk: those up to a committed batch, and what has changed since then."""

    def merged(self) -> int:
        """Return the last batch whose changes are in the store; -1 at the beginning."""
        ...

    def look_up(self, operator: str, key: str) -> bytes:
        """Return a state of the store; empty if there is none."""
        ...

    def ordered(
        self, operator: str, start: str, end: str, most: int
    ) -> list[tuple[str, bytes]]:
        """Return not more than *most* states of keys from *start* up to *end*, in order.

        Only where `is_ordered` says that there is an order.
        """
        ...

    def read_delta(self, cut: CutId) -> Delta:
        """Return what had changed by a cut. Raise `FileNotFoundError` if it is removed."""
        ...


@dataclass(frozen=True, slots=True)
class MergeState:
    """Put what has changed by batch *upto* into the store, then tell so.

    The changes are those of *cuts*, in order, and none at all if they are there already.
    """

    upto: int
    cuts: Sequence[tuple[CutId, Delta]]


def is_ordered(operator: str) -> bool:
    """Tell whether keys are kept in order: not those of operators, but what is beside them.

    >>> is_ordered("count"), is_ordered("count@reminders")
    (False, True)
    """
    return "@" in operator


@dataclass(slots=True)
class _Layer:
    """What has changed by a cut, or since the last one; some keys have an order."""

    states: dict[str, dict[str, bytes]] = field(default_factory=dict)
    order: dict[str, OrderedKeys] = field(default_factory=dict)

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
        """Return the first of the keys from *start* up to *end*, not more than *most*."""
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
        """Return states of keys from *start* on, in order, and up to where these are all.

        That is *end*, unless there are more than *most*: in the store, or changed since a cut.
        """
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
        """Let a key have another state, or none if it is empty."""
        self._changed.change(operator, key, state)

    def cut(self, cut: CutId) -> tuple[tuple[CutId, ...], Delta]:
        """Return the cuts whose changes are not in the store, and those of this one."""
        changed, self._changed = self._changed, _Layer()
        if changed.states:
            self._layers.append((cut, changed))
        return tuple(known for known, _ in self._layers), changed.states

    def restore(self, cuts: Iterable[CutId], *, batch: int | None = None) -> None:
        """Forget all, and go on with the state of a cut, which is of *batch*.

        Raise `EngineError` if the store has the states of a later batch already.
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
                # another host, which was not heard for a while, has just merged it
                if cut.batch > self._store.merged():
                    raise BadFile(str(error.filename), "is missing", RESTORE) from error
        if self._layers:  # so it may have merged a later cut than one that was read
            merged = self._store.merged()
            self._layers = [(cut, layer) for cut, layer in self._layers if cut.batch > merged]

    def committed(self, batch: int) -> list[MergeState]:
        """Return what to do when the cut of a batch is committed, of which all this comes."""
        ready = [(cut, layer.states) for cut, layer in self._layers if cut.batch <= batch]
        if self._merging or not ready:
            return []
        self._merging = True
        return [MergeState(batch, ready)]

    def merged(self, upto: int) -> None:
        """Take note that the store has what had changed by a batch."""
        self._merging = False
        self._layers = [(cut, layer) for cut, layer in self._layers if cut.batch > upto]

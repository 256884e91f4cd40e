"""A consistent snapshot of all states of a part."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from sojourn.spark.host.state.keyed_state import Delta

__all__ = ["StateMoment"]


@dataclass(frozen=True, slots=True)
class StateMoment:
    """The states of a part as of one moment, unaffected by concurrent writes."""

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

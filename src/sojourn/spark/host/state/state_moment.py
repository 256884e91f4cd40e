"""The states of all keys of a part as of one moment, whatever is written meanwhile."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from sojourn.spark.host.state.keyed_state import Delta

__all__ = ["StateMoment"]


@dataclass(frozen=True, slots=True)
class StateMoment:
    """States that are *stored*, by operator, with all changes up to batch *merged*.

    What has *changed* since then comes before them.
    """

    changed: Delta
    merged: int
    stored: Callable[[str], Iterable[tuple[str, bytes]]]

    def states(self, operator: str) -> Iterator[tuple[str, bytes]]:
        """Yield the keys of an operator, with the state of each.

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

"""Expiry of states that have not changed for a time to live.

A state that can expire begins with a stamp: the time of its last change, and the time of its
next check. A change does not move the check; only a check that finds a newer change schedules
another. So a state that changes often costs no more timers than one that does not.
"""

from collections.abc import Iterator, Mapping
from hashlib import blake2b
from struct import Struct as Layout

from sojourn.spark.host.state.keyed_state import Change, KeyedState
from sojourn.spark.host.state.schedule import Schedule, due_of, entry

# MessagePack uses no such byte: a state without a stamp cannot begin with it.
_STAMPED = b"\xc1"
_STAMP = Layout("!cqq")
# States checked in one step: a million that expire together must not delay records.
_AT_ONCE = 500
# Checks run several times a second, so one that is due for longer did not fit into its step.
_LATE_US = 1_000_000


def unstamped(state: bytes) -> bytes:
    """Return a state without its stamp."""
    return state[_STAMP.size :] if state.startswith(_STAMPED) else state


def expiry_of(operator: str) -> str:
    """Return the name of the schedule of checks for the states of an operator.

    >>> expiry_of("count")
    'count@expiry'
    """
    return f"{operator}@expiry"


class Expiry:
    """Removes states of the operators in *ttl_us*, that long after their last change.

    Methods yield changes; the caller must apply each before it takes the next.
    """

    def __init__(self, state: KeyedState, ttl_us: Mapping[str, int]) -> None:
        self._state, self._ttl_us = state, ttl_us
        self._schedules = {op: Schedule(state, expiry_of(op)) for op in ttl_us}
        self._known = False

    def restore(self) -> None:
        """Load the schedules from the restored state."""
        for schedule in self._schedules.values():
            schedule.forget()
        self._known = True

    def of(self, operator: str, key: str, now_us: int) -> bytes:
        """Return the state of a key without its stamp; empty if it has expired."""
        kept = self._state.of(operator, key)
        if operator in self._ttl_us and kept.startswith(_STAMPED):
            _, changed_us, _ = _STAMP.unpack_from(kept)
            if changed_us + self._ttl_us[operator] <= now_us:
                return b""
        return unstamped(kept)

    def changes(self, operator: str, key: str, state: bytes, now_us: int) -> Iterator[Change]:
        """Yield the changes to make if a function changes the state of a key."""
        if operator not in self._ttl_us:
            yield operator, key, state
            return
        kept = self._state.of(operator, key)
        schedule, due_us = self._schedules[operator], None
        if kept.startswith(_STAMPED):
            _, _, due_us = _STAMP.unpack_from(kept)
        if not state:
            if due_us is not None:  # the state is removed, so its check is removed too
                yield schedule.name, _entry(due_us, key), b""
            yield operator, key, b""
            return
        if due_us is None:
            due_us = now_us + self._ttl_us[operator]
            yield from self._looked_at(schedule, due_us, key)
        yield operator, key, _STAMP.pack(_STAMPED, now_us, due_us) + state

    def is_behind(self, now_us: int) -> bool:
        """Return whether more checks are due than fit into one step."""
        return self._known and any(
            schedule.next_us <= now_us - _LATE_US for schedule in self._schedules.values()
        )

    def due(self, now_us: int) -> Iterator[Change]:
        """Yield the changes of all checks that are due; none before a cut was restored."""
        for operator, schedule in self._schedules.items() if self._known else ():
            for _ in range(_AT_ONCE):
                found = schedule.due(now_us)
                if found is None:
                    break
                yield schedule.name, found[0], b""
                yield from self._expired(operator, due_of(found[0]), _key(found[1]), now_us)

    def _expired(self, operator: str, due_us: int, key: str, now_us: int) -> Iterator[Change]:
        kept = self._state.of(operator, key)
        if not kept.startswith(_STAMPED):
            return
        _, changed_us, looked_at_us = _STAMP.unpack_from(kept)
        if looked_at_us != due_us:  # removed and set again meanwhile: it has another check
            return
        then_us = changed_us + self._ttl_us[operator]
        if then_us <= now_us:
            yield operator, key, b""
            return
        yield from self._looked_at(self._schedules[operator], then_us, key)
        yield operator, key, _STAMP.pack(_STAMPED, changed_us, then_us) + unstamped(kept)

    def _looked_at(self, schedule: Schedule, due_us: int, key: str) -> Iterator[Change]:
        due, content = _entry(due_us, key), key.encode(errors="surrogatepass")
        yield schedule.name, due, content
        schedule.added(due, content)


def _key(content: bytes) -> str:
    return content.decode(errors="surrogatepass")


def _entry(due_us: int, key: str) -> str:
    name = key.encode(errors="surrogatepass")
    return entry(due_us, blake2b(name, digest_size=16).hexdigest())

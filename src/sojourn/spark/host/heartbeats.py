"""Heartbeat timeouts of relays and agents, whose machines may vanish without a message.

Only time in which the host was listening counts. A host that was suspended, or whose event loop
was blocked, has received nothing, and then finds all heartbeats in its buffers.
"""

from collections.abc import Hashable
from typing import Generic, TypeVar

__all__ = ["Heartbeats"]

Sender = TypeVar("Sender", bound=Hashable)

# The most that one check may add to the listening time; checks are a quarter second apart.
_MOST_S = 1.0


class Heartbeats(Generic[Sender]):
    """The last heartbeat of each sender; one that is silent for *timeout_s* is lost.

    >>> heartbeats = Heartbeats[int](timeout_s=2.0)
    >>> heartbeats.begin(1)
    >>> [heartbeats.silent(now_s) for now_s in (10.0, 10.5, 600.0, 600.5, 601.0)]
    [[], [], [], [], [1]]
    """

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._heard_s: dict[Sender, float] = {}
        self._looked_s: float | None = None
        self.listened_s = 0.0
        """How long the host was listening, as of the last check."""

    def begin(self, sender: Sender) -> None:
        """Watch a sender from now on."""
        self._heard_s[sender] = self.listened_s

    def heard(self, sender: Sender) -> None:
        """Record a sign of life of a sender, if it is watched."""
        if sender in self._heard_s:
            self._heard_s[sender] = self.listened_s

    def end(self, sender: Sender) -> None:
        """Stop watching a sender."""
        self._heard_s.pop(sender, None)

    def silent(self, now_s: float) -> list[Sender]:
        """Return the senders that have timed out; call this several times a second."""
        if self._looked_s is not None:
            self.listened_s += min(_MOST_S, now_s - self._looked_s)
        self._looked_s = now_s
        since_s = self.listened_s - self._timeout_s
        return [sender for sender, heard_s in self._heard_s.items() if heard_s < since_s]

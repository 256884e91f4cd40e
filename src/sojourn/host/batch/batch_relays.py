"""The relays of the batch that runs: which have begun, and which have handed over all."""

from collections.abc import Iterator

from sojourn.host.batch.cut import Partition

__all__ = ["LOST", "BatchRelays"]

# Why relays are refused that belong to a batch which has lost one.
LOST = "a task of its batch was lost, so all of the batch runs again"


class BatchRelays:
    """One relay for each task of a batch.

    Once they are *finished* they may leave; one that leaves before is *lost*.
    """

    def __init__(self) -> None:
        self._relays: dict[int, None] = {}  # in order of arrival
        self._of: dict[Partition, int] = {}
        self._ended: set[int] = set()
        self._expected: int | None = None
        self.lost = self.finished = False

    def __len__(self) -> int:
        return len(self._relays)

    def __iter__(self) -> Iterator[int]:
        return iter(self._relays)

    def __contains__(self, relay: int) -> bool:
        return relay in self._relays

    @property
    def missing(self) -> str:
        """What those that have ended wait for; empty if for nothing."""
        if not self._ended:
            return ""
        if self._expected is None:
            return "the number of tasks of the batch is not known"
        if len(self._relays) < self._expected:
            return f"{len(self._relays)} of {self._expected} tasks of the batch have begun"
        return ""

    @property
    def all_ended(self) -> bool:
        """Whether all have handed over what Spark has read."""
        return len(self._ended) == self._expected

    def came(self, relay: int) -> None:
        """Take note of a relay that begins."""
        self._relays[relay] = None

    def expect(self, number: int) -> None:
        """Take note how many there are."""
        self._expected = number

    def reads(self, relay: int, partition: Partition) -> None:
        """Take note that a relay has read from a partition."""
        self._of[partition] = relay

    def of(self, partition: Partition) -> int:
        """Return the relay that reads a partition, or any."""
        relay = self._of.get(partition)
        return next(iter(self._relays)) if relay is None else relay

    def ended(self, relay: int) -> None:
        """Take note that a relay has handed over all that Spark has read."""
        if relay in self._relays:
            self._ended.add(relay)

    def left(self, relay: int) -> list[int]:
        """Do without a relay; return whom to refuse if the batch has lost it."""
        known = relay in self._relays
        self._relays.pop(relay, None)
        self._ended.discard(relay)
        self._of = {p: other for p, other in self._of.items() if other != relay}
        if not known or self.finished:
            return []
        self.lost = True
        refused = list(self._relays)
        self._relays, self._of, self._ended = {}, {}, set()
        return refused

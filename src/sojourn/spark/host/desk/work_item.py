"""What the desk of an operator has in hand: records and processors."""

from collections import deque
from dataclasses import dataclass, field

from sojourn.decide.plan import HERE
from sojourn.spark.wire.processor import OutputRecord
from sojourn.spark.wire.record import Record

__all__ = ["Processor", "RecordInHand", "Round"]


@dataclass(slots=True, eq=False)
class RecordInHand:
    """A record in hand, and how often it was tried.

    One that was with others when their processor died or hung is given *alone* from then on.
    What comes of a *forgotten* one is nobody's. So often a node was *lost* while it was there.
    """

    record: Record
    place: int = 0
    tries: int = 0
    deaths: int = 0
    alone: bool = False
    lost: int = 0
    forgotten: bool = False
    round: "Round | None" = None

    @property
    def key(self) -> str | None:
        """What it is served in order with."""
        return self.record.key


@dataclass(slots=True)
class Round:
    """Of a record for everyone: how many have it to do, and what came of the others.

    *error* is that of the first that failed. Those that *died* or went may not have done it.
    """

    left: int
    did: int = 0
    outputs: list[OutputRecord] = field(default_factory=list)
    error: str = ""
    traceback: str = ""
    died: str = ""


@dataclass(slots=True)
class Processor:
    """One on a *node* that starts (not *ready*), idles, works, or goes when it is done.

    A *starved* one could not be started because its system had no room for it.

    What is for everyone waits for it in its *lane*, the first of which it has *tried*. A lost
    one is gone, and nobody knows yet why. Before its first record it is told what it has *to
    know*, and is *learning* the first of that. It *waits_for_first* from when it was given
    records and had none, until it is done with the first.
    """

    since_s: float
    node: str = HERE
    ready: bool = False
    starved: bool = False
    lost: bool = False
    going: bool = False
    waits_for_first: bool = False
    jobs: list[RecordInHand] = field(default_factory=list)
    lane: deque[RecordInHand] = field(default_factory=deque)
    tried: int = 0
    to_know: deque[Record] = field(default_factory=deque)
    learning: list[Record] = field(default_factory=list)

    @property
    def here(self) -> bool:
        """Whether it takes records, now or when it has done those it has."""
        return self.ready and not (self.lost or self.going)

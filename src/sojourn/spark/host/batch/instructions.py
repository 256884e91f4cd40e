"""What the ledger of a part hears of relays, and tells the host to do."""

from dataclasses import dataclass, field

from sojourn.spark.host.batch.cut import Cut, Leaving
from sojourn.spark.host.state.keyed_state import Delta, MergeState

__all__ = [
    "Arrival",
    "CutInstruction",
    "FinishRelay",
    "HandOver",
    "RefuseRelay",
    "Restore",
    "SaveCut",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """A relay begins, in a batch and an attempt at it, as *task* number so many of these."""

    attempt: int
    batch: int
    task: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class HandOver:
    """Give a result to a relay.

    All roots of its partition below *floor* have left for good: what comes of one later is a
    repetition.
    """

    relay: int
    leaving: Leaving
    floor: int


@dataclass(frozen=True, slots=True)
class SaveCut:
    """Write a cut to disk, with the states that have changed, and tell that it is there."""

    cut: Cut
    changed: Delta


@dataclass(frozen=True, slots=True)
class FinishRelay:
    """Let a relay end: the cut of its batch is on disk."""

    relay: int


@dataclass(frozen=True, slots=True)
class RefuseRelay:
    """End a relay of a batch or an attempt that is over."""

    relay: int
    reason: str


@dataclass(frozen=True, slots=True)
class Restore:
    """Forget all records, and go on with those of a cut, which are open again."""

    cut: Cut


CutInstruction = HandOver | SaveCut | FinishRelay | RefuseRelay | Restore | MergeState

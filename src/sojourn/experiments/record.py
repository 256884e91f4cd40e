"""What an experiment says of itself, and what came of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from sojourn.report.panel import Panel

if TYPE_CHECKING:
    from sojourn.experiments.bench import Bench

__all__ = ["About", "Experiment", "Findings", "Table", "Verdict"]


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """Where a claim is made, what it is, and how what the paper does not give was chosen.

    *caveat* says what a reader of the verdict must know; empty where there is nothing.
    """

    source: str
    claim: str
    chosen: str
    caveat: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One point of a claim: whether it holds, and the numbers that say so."""

    point: str
    holds: bool
    numbers: str


@dataclass(frozen=True, slots=True)
class Table:
    """What was measured, row by row."""

    columns: tuple[str, ...]
    rows: Sequence[tuple[object, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What came of an experiment."""

    table: Table
    panels: tuple[Panel, ...]
    verdicts: tuple[Verdict, ...]

    @property
    def holds(self) -> bool:
        """Whether every point of the claim does."""
        return all(verdict.holds for verdict in self.verdicts)


class Experiment(Protocol):
    """A description that can be run on any engine."""

    @property
    def about(self) -> About:
        """The claim, and how parameters were chosen."""
        ...

    def run(self, bench: "Bench") -> Findings:
        """Return what comes of it on the engines that *bench* makes."""
        ...

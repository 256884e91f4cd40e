"""The description of an experiment, and its outcome."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from sojourn.report.panel import Panel

if TYPE_CHECKING:
    from sojourn_papers.experiments.bench import Bench


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """The source of a claim, the claim, and how parameters not in the paper were chosen.

    *caveat* is what a reader of the verdict must know; it may be empty.
    """

    source: str
    claim: str
    chosen: str
    caveat: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One point of a claim: whether it holds, and the numbers."""

    point: str
    holds: bool
    numbers: str

    @classmethod
    def of(cls, point: str, parts: Iterable[tuple[bool, str]]) -> "Verdict":
        """Return the verdict on a point that holds if all its parts do, at least one."""
        told = list(parts)
        holds = bool(told) and all(holds for holds, _ in told)
        return cls(point=point, holds=holds, numbers="; ".join(text for _, text in told))


@dataclass(frozen=True, slots=True)
class Table:
    """What was measured, row by row."""

    columns: tuple[str, ...]
    rows: Sequence[tuple[object, ...]]

    @classmethod
    def of(cls, rows: Iterable[Mapping[str, object]]) -> "Table":
        """Return the table of *rows*, at least one, which all have the same columns."""
        listed = list(rows)
        return cls(tuple(listed[0]), [tuple(row.values()) for row in listed])


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """The outcome of an experiment."""

    table: Table
    panels: tuple[Panel, ...]
    verdicts: tuple[Verdict, ...]

    @property
    def holds(self) -> bool:
        """Whether every point of the claim holds."""
        return all(verdict.holds for verdict in self.verdicts)


class Experiment(Protocol):
    """A description that can be run on any engine."""

    @property
    def about(self) -> About:
        """The claim, and how parameters were chosen."""
        ...

    def run(self, bench: "Bench") -> Findings:
        """Run it on the engines of *bench*, and return the outcome."""
        ...

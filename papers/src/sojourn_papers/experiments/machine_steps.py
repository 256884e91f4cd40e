"""The number of machines in a run, step by step."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from sojourn.decide.solution import NodeSize
from sojourn.report.panel import Mark, Series
from sojourn_papers.experiments.record import Table
from sojourn_papers.experiments.timeline import Watched


@dataclass(frozen=True, slots=True)
class Step:
    """From *minute* on there are so many *machines*; *how* they changed, if it is known."""

    minute: float
    machines: int
    how: str = ""


def machine_steps(processors: int, nodes: NodeSize, run: Watched) -> list[Step]:
    """Return how many machines there were in a run that was started with *processors*.

    An engine that has machines tells when they were there, or gone. Without them, it is as many
    as the processors need.
    """
    steps = [Step(0.0, nodes.holding(processors))]
    for each in run.machines or ():
        number = steps[-1].machines + (1 if each.kind == "added" else -1)
        steps.append(Step(each.at_s / run.minute_s, number, str(each)))
    if run.machines is not None:
        return steps
    for change in run.changes:
        number = nodes.holding(sum(map(int, change.after.split(":"))))
        if number != steps[-1].machines:
            steps.append(Step(change.minute, number))
    return steps


def machine_marks(steps: Mapping[str, Sequence[Step]]) -> list[Mark]:
    """Return a mark for each machine that was added or removed, by the name of the run."""
    return [
        Mark(
            after.minute,
            f"added to {name}" if after.machines > before.machines else f"removed from {name}",
        )
        for name, every in steps.items()
        for before, after in pairwise(every)
    ]


def machine_line(name: str, steps: Sequence[Step], run: Watched) -> Series:
    """Return the line of the machines of a run, with right angles."""
    ends = [*(step.minute for step in steps[1:]), run.minutes[-1].minute]
    each = list(zip(steps, ends, strict=True))
    return Series(
        label=name,
        x=[minute for step, end in each for minute in (step.minute, end)],
        y=[float(step.machines) for step, _ in each for _ in range(2)],
    )


def with_machines(
    table: Table, runs: Mapping[str, Watched], steps: Mapping[str, Sequence[Step]]
) -> Table:
    """Return the *table* of the minutes of *runs* with the machines at the end of each."""
    numbers = [
        next(step.machines for step in reversed(steps[name]) if step.minute <= each.minute)
        for name, run in runs.items()
        for each in run.minutes
    ]
    rows = [(*row, number) for row, number in zip(table.rows, numbers, strict=True)]
    return Table((*table.columns, "machines"), rows)

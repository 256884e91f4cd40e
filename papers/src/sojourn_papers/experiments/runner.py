"""Runs experiments and writes the results: CSV, figures, one page."""

import csv
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter

from sojourn.errors import BadFile
from sojourn.report.panel import Panel
from sojourn_papers.experiments import experiment
from sojourn_papers.experiments.bench import Bench
from sojourn_papers.experiments.record import About, Findings, Table

Draw = Callable[[Sequence[Panel], Path], None]
"""Draws panels into a file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reproduced:
    """An experiment that was run, and where its files are."""

    name: str
    about: About
    outcome: Findings
    csv: Path
    picture: Path | None
    wall_s: float


def reproduce(
    names: Sequence[str], bench: Bench, out: Path, draw: Draw | None = None
) -> Iterator[Reproduced]:
    """Run the experiments in turn, write their files to *out*, and yield each when done.

    Raise `BadInput` at once if a name is unknown, `BadFile` if files cannot be written.
    """
    chosen = [(name, experiment(name)) for name in names]
    with _writing(out):
        out.mkdir(parents=True, exist_ok=True)
    for name, described in chosen:
        began, about = perf_counter(), described.about
        outcome = _said(described.run(bench), bench.on)
        if bench.beside is not None:
            other = described.run(replace(bench, engine=bench.beside))
            outcome = _beside(outcome, other)
        picture = out / f"{name}.png" if draw else None
        if draw and picture:
            draw(outcome.panels, picture)
        yield Reproduced(
            name=name,
            about=replace(about, caveat=" ".join(filter(None, (about.caveat, bench.caveat)))),
            outcome=outcome,
            csv=_write_csv(out / f"{name}.csv", outcome),
            picture=picture,
            wall_s=perf_counter() - began,
        )


def _said(outcome: Findings, on: str) -> Findings:
    """Return *outcome* with the name of the engine in its table and figures."""
    if not on:
        return outcome
    table = Table((*outcome.table.columns, "on"), [(*row, on) for row in outcome.table.rows])
    panels = tuple(replace(p, title=f"{p.title}\n{on}") for p in outcome.panels)
    return replace(outcome, table=table, panels=panels)


def _beside(outcome: Findings, other: Findings) -> Findings:
    """Return *outcome* with the results of other engines in each verdict."""
    verdicts = tuple(
        replace(
            one,
            numbers=f"{one.numbers} (simulated under the same conditions, it "
            f"{'holds' if two.holds else 'does not hold'}: {two.numbers})",
        )
        for one, two in zip(outcome.verdicts, other.verdicts, strict=True)
    )
    return replace(outcome, verdicts=verdicts)


def _write_csv(path: Path, outcome: Findings) -> Path:
    with _writing(path), path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows((outcome.table.columns, *outcome.table.rows))
    return path


def write_page(
    done: Sequence[Reproduced], seed: int, out: Path, engine: str = "the simulator"
) -> Path:
    """Write the page on all that was *done*, and return where it is."""
    path = out / "report.md"
    with _writing(path):
        path.write_text(page(done, seed, engine), encoding="utf-8")
    return path


def page(done: Sequence[Reproduced], seed: int, engine: str = "the simulator") -> str:
    """Return the page: each claim, its verdict with numbers, and how it was tested."""
    held = sum(one.outcome.holds for one in done)
    scaled = "measured, and scaled to the pace of the papers"
    times = "simulated" if engine == "the simulator" else scaled
    top = (
        f"# The figures and tables of the DRS papers, on {engine}\n\n"
        f"{held} of {len(done)} claims hold with seed {seed}. Times are {times}; ± is half "
        "of a 95 % confidence interval.\n"
    )
    return "\n".join([top, *(_section(one) for one in done)])


def _section(one: Reproduced) -> str:
    lines = [
        f"## {one.name}: {'holds' if one.outcome.holds else 'does not hold'}\n",
        f"**{one.about.source}.** {one.about.claim}\n",
    ]
    if one.about.caveat:
        lines.append(f"*{one.about.caveat}*\n")
    lines += ["| point | verdict | numbers |", "|---|---|---|"]
    lines += [
        f"| {v.point} | {'holds' if v.holds else '**does not hold**'} | {v.numbers} |"
        for v in one.outcome.verdicts
    ]
    lines.append("")
    if one.picture is not None:
        lines.append(f"![{one.name}]({one.picture.name})\n")
    lines += [
        f"How parameters were chosen: {one.about.chosen}\n",
        f"All numbers: [{one.csv.name}]({one.csv.name}). It took {one.wall_s:.1f} s.\n",
    ]
    return "\n".join(lines)


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Raise `BadFile` if *path* cannot be written."""
    try:
        yield
    except OSError as error:
        problem = f"cannot be written: {error.strerror or error}"
        raise BadFile(str(path), problem, "name a writable folder with --out") from error

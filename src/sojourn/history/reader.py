"""Reads histories, also while the loop appends to them.

All functions raise `BadFile` if the file or the run does not exist or cannot be read.
"""

import sqlite3
import struct
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

from sojourn.errors import BadFile, BadInput
from sojourn.history.file import opened, refusals
from sojourn.history.format import Run, episode_of, run_of, sketch_of
from sojourn.knowledge import Episode, Knowledge
from sojourn.measure.observed import LEAST_SAMPLES
from sojourn.topology import Topology

# Turns per query.
_PAGE = 100
# Raised for invalid text and bytes.
_DAMAGES = (ValueError, TypeError, LookupError, AttributeError, struct.error, zlib.error)


def read(path: Path, *, run: int | None = None, keep: int = 240) -> Knowledge:
    """Return the knowledge after the last turn of a run, the last run by default.

    It has the last *keep* turns, and the topology measured in them.
    """
    with refusals(path, to="read"), closing(opened(path, to="read")) as connection:
        number, begun = _run(connection, path, run)
        known = Knowledge(
            topology=begun.topology, plan=begun.plan, midnight_s=begun.midnight_s, keep=keep
        )
        rows = connection.execute(
            "SELECT * FROM turns WHERE run = ? ORDER BY turn DESC LIMIT ?", (number, keep)
        ).fetchall()
        # the last change may be older than the turns that are kept
        for row in connection.execute(
            "SELECT * FROM turns WHERE run = ? AND kind IN ('up', 'down', 'move') "
            "AND pause_s IS NOT NULL ORDER BY turn DESC LIMIT 1",
            (number,),
        ):
            change = _episode(row, path)
            known = replace(known, changed_at_s=change.decision.at_s)
            if change.cost is not None and row["turn"] < rows[-1]["turn"]:
                known = replace(known, pauses_s=(change.cost.pause_s,))
    for row in reversed(rows):
        episode = _episode(row, path)
        known = known.saw(episode.observation)
        known = known.did(episode.decision, episode.cost, episode.failure)
    return known


def read_runs(path: Path) -> dict[int, Run]:
    """Return all runs by their number, in the order they began."""
    with refusals(path, to="read"), closing(opened(path, to="read")) as connection:
        return _runs(connection, path)


def read_run(path: Path, run: int | None = None) -> tuple[int, Run]:
    """Return the number of a run, the last one by default, and its settings."""
    with refusals(path, to="read"), closing(opened(path, to="read")) as connection:
        return _run(connection, path, run)


def read_episodes(path: Path, *, run: int | None = None) -> Iterator[Episode]:
    """Yield the turns of a run, the last by default, including turns appended meanwhile."""
    with refusals(path, to="read"), closing(opened(path, to="read")) as connection:
        number, _ = _run(connection, path, run)
        last = -1
        # page by page: an open query would keep the write-ahead log from being emptied
        while rows := connection.execute(
            "SELECT * FROM turns WHERE run = ? AND turn > ? ORDER BY turn LIMIT ?",
            (number, last, _PAGE),
        ).fetchall():
            for row in rows:
                yield _episode(row, path)
            last = rows[-1]["turn"]


def measured_topology(path: Path, run: int | None = None) -> tuple[Topology, list[str]]:
    """Return the last measured topology of *run*, or of the last run that has one; and remarks.

    Remarks name the source, and operators with too few samples. Raise `BadFile` if no turn has
    measurements.
    """
    runs = read_runs(path)
    for number in reversed(runs) if run is None else [run]:
        known = read(path, run=number)
        usable = [e.observation for e in known.episodes if e.observation.usable]
        if usable:
            break
    else:
        raise BadFile(
            str(path), "has no turn with measurements", "let the application run for longer"
        )
    name, since = runs[number].topology.name, runs[number].started_at
    started = f"{since:%Y-%m-%d %H:%M:%S %Z}"
    remarks = [f"measured in run {number} of {name}, started {started}, from {path}"]
    samples = {
        name: sum(seen.operators[name].samples for seen in usable)
        for name in known.topology.operator
    }
    few = [name for name, number in samples.items() if number < LEAST_SAMPLES]
    if few:
        remarks.append(
            f"fewer than {LEAST_SAMPLES} records of {', '.join(few)} were measured: service "
            "times are hints or defaults"
        )
    # if nothing arrived at the end of the run, the last load before counts
    loads = [seen.arrivals_per_s for seen in usable if seen.arrivals_per_s > 0]
    if loads and usable[-1].arrivals_per_s == 0:
        return known.topology.scaled(loads[-1] / known.topology.arrivals_per_s), remarks
    return known.topology, remarks


def _run(connection: sqlite3.Connection, path: Path, number: int | None) -> tuple[int, Run]:
    runs = _runs(connection, path)
    if not runs:
        raise BadFile(str(path), "has no run", "wait until an application has started")
    chosen = max(runs) if number is None else number
    if chosen not in runs:
        there = f"runs {min(runs)} to {max(runs)}" if len(runs) > 1 else f"run {max(runs)}"
        raise BadFile(str(path), f"has no run {chosen}", f"it has {there}")
    return chosen, runs[chosen]


def _runs(connection: sqlite3.Connection, path: Path) -> dict[int, Run]:
    runs = {}
    for row in connection.execute("SELECT * FROM runs ORDER BY run"):
        with _damage(path, f"run {row['run']}"):
            runs[row["run"]] = run_of(row, source=f"{path}, run {row['run']}")
    return runs


def _episode(row: sqlite3.Row, path: Path) -> Episode:
    with _damage(path, f"turn {row['turn']}"):
        completions, sums = sketch_of(row["completions"]), sketch_of(row["sums"])
        return episode_of(row["record"], completions, sums)


@contextmanager
def _damage(path: Path, what: str) -> Iterator[None]:
    """Turn decoding errors into a `BadFile` that names the row, *what*."""
    try:
        yield
    except (*_DAMAGES, BadInput) as error:
        problem = f"cannot be read: {type(error).__name__}: {error}"
        raise BadFile(
            str(path), f"{what} {problem}", "restore a copy, or delete its row"
        ) from error

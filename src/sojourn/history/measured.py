"""The topology that a run measured last, and what is to be known of it."""

from pathlib import Path

from sojourn.errors import BadFile
from sojourn.history.reader import read, read_runs
from sojourn.measure.observed import LEAST_SAMPLES
from sojourn.topology import Topology

__all__ = ["measured_topology"]


def measured_topology(path: Path, run: int | None = None) -> tuple[Topology, list[str]]:
    """Return what *run* measured last, or the last run that measured anything; and remarks.

    They say where it was found, and what was not measured. Raise `BadFile` if there is nothing.
    """
    runs = read_runs(path)
    for number in reversed(runs) if run is None else [run]:
        known = read(path, run=number)
        usable = [e.observation for e in known.episodes if e.observation.usable]
        if usable:
            break
    else:
        raise BadFile(str(path), "has no turn that measured anything", "let it run for longer")
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
            f"fewer than {LEAST_SAMPLES} records of {', '.join(few)} were measured: its times "
            "are those of its hints, or guesses"
        )
    # an application that was stopped when nothing arrived any more: its last load counts
    loads = [seen.arrivals_per_s for seen in usable if seen.arrivals_per_s > 0]
    if loads and usable[-1].arrivals_per_s == 0:
        return known.topology.scaled(loads[-1] / known.topology.arrivals_per_s), remarks
    return known.topology, remarks

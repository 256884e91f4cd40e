"""The topology that a run measured last, with remarks."""

from pathlib import Path

from sojourn.errors import BadFile
from sojourn.history.reader import read, read_runs
from sojourn.measure.observed import LEAST_SAMPLES
from sojourn.topology import Topology

__all__ = ["measured_topology"]


def measured_topology(path: Path, run: int | None = None) -> tuple[Topology, list[str]]:
    """Return the last measured topology of *run*, or of the last run that has one; and remarks.

    Remarks name the source and what was not measured. Raise `BadFile` if there is none.
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

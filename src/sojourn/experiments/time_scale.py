"""Speeds up a topology and its load, and scales the counters back."""

import json
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path

from sojourn.measure.report import OperatorReport, ProcessorReport, Pull, RootReport
from sojourn.simulate.workload import Rates
from sojourn.topology import Arrival, Operator, Topology
from sojourn.topology.file import FORMAT

__all__ = ["as_described", "sped_up", "sped_up_rates", "write_topology"]


def sped_up(topology: Topology, faster: float) -> Topology:
    """Return *topology* with all rates and times *faster*.

    Transfer times and cores are left out: they are those of the machine.
    """
    return replace(
        topology,
        arrivals=tuple(replace(a, per_s=faster * a.per_s) for a in topology.arrivals),
        operators=tuple(
            replace(o, service_s=o.service_s / faster, transfer_s=0.0, cpu_s=None)
            for o in topology.operators
        ),
        cores=None,
    )


def sped_up_rates(rates: Rates, faster: float) -> Rates:
    """Return rates that change so many times as fast, and are so many times as high.

    >>> sped_up_rates(Rates.steps((0, 6), (360, 12)), 6).points
    ((0.0, 36.0), (60.0, 36.0), (60.0, 72.0))
    """
    return Rates(tuple((at_s / faster, faster * per_s) for at_s, per_s in rates.points))


def write_topology(topology: Topology, path: Path) -> None:
    """Write *topology* as a file."""
    told = {
        "format": FORMAT,
        "name": topology.name,
        "arrivals": {a.name: _fields(a) for a in topology.arrivals},
        "operators": {o.name: _fields(o) for o in topology.operators},
    }
    if topology.cores is not None:
        told["cores"] = topology.cores
    path.write_text(json.dumps(told, indent=2), encoding="utf-8")


def _fields(record: Arrival | Operator) -> dict[str, object]:
    told = {f.name: getattr(record, f.name) for f in fields(record) if f.name != "name"}
    return {
        name: dict(value) if isinstance(value, Mapping) else value
        for name, value in told.items()
        if value is not None
    }


def as_described(pull: Pull, faster: float, zero_s: float = 0.0) -> Pull:
    """Return *pull* at the pace of the description, where *zero_s* is the start of time.

    How busy cores were is the same at any pace.
    """
    return replace(
        pull,
        since_s=faster * (pull.since_s - zero_s),
        at_s=faster * (pull.at_s - zero_s),
        operators=tuple(_operator(report, faster) for report in pull.operators),
        roots=_roots(pull.roots, faster),
    )


def _operator(report: OperatorReport, faster: float) -> OperatorReport:
    return replace(
        report,
        processors=tuple(_processor(one, faster) for one in report.processors),
        bin_s=faster * report.bin_s,
        transfer_s=faster * report.transfer_s,
    )


def _processor(report: ProcessorReport, faster: float) -> ProcessorReport:
    return replace(
        report,
        service_s=faster * report.service_s,
        service_ss=faster**2 * report.service_ss,
        wait_s=faster * report.wait_s,
        wait_ss=faster**2 * report.wait_ss,
        cpu_s=faster * report.cpu_s,
    )


def _roots(report: RootReport, faster: float) -> RootReport:
    return replace(
        report,
        completions=report.completions.times(faster),
        sums=report.sums.times(faster),
    )

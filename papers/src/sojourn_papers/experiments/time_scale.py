"""Speeds up a topology and its load, and scales the counters back."""

from dataclasses import replace

from sojourn.measure.counters import OperatorReport
from sojourn.measure.report import Pull
from sojourn.simulate.workload import Rates
from sojourn.topology import Topology


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


def as_described(pull: Pull, faster: float, zero_s: float = 0.0) -> Pull:
    """Return *pull* at the pace of the description, where *zero_s* is the start of time.

    How busy cores were is the same at any pace.
    """
    return replace(
        pull,
        since_s=faster * (pull.since_s - zero_s),
        at_s=faster * (pull.at_s - zero_s),
        operators=tuple(_operator(report, faster) for report in pull.operators),
        roots=replace(
            pull.roots,
            completions=pull.roots.completions.times(faster),
            sums=pull.roots.sums.times(faster),
        ),
    )


def _operator(report: OperatorReport, faster: float) -> OperatorReport:
    processors = [
        replace(
            one,
            service_s=faster * one.service_s,
            service_ss=faster**2 * one.service_ss,
            wait_s=faster * one.wait_s,
            wait_ss=faster**2 * one.wait_ss,
            cpu_s=faster * one.cpu_s,
            longest_service_s=faster * one.longest_service_s,
        )
        for one in report.processors
    ]
    return replace(
        report,
        processors=tuple(processors),
        bin_s=faster * report.bin_s,
        transfer_s=faster * report.transfer_s,
    )

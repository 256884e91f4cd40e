"""Pulls of a chain of two operators, sound unless a test spoils them."""

from dataclasses import replace

from sojourn.measure import counters
from sojourn.measure.counters import OperatorReport, ProcessorReport
from sojourn.measure.report import Pull, RootReport
from sojourn.measure.sketch import Sketch
from sojourn.topology import Arrival, Operator, Topology

CHAIN = Topology(
    name="chain",
    arrivals=(Arrival(name="in", per_s=10, into="split"),),
    operators=(
        Operator(name="split", service_s=0.1, emits={"count": 3}),
        Operator(name="count", service_s=0.01),
    ),
)


def processor(name="p0", times_s=(0.1,) * 50, waits_s=None, served=None, **told):
    waits_s = times_s if waits_s is None else waits_s
    return ProcessorReport(
        processor=name,
        served=len(times_s) if served is None else served,
        sampled=len(times_s),
        service_s=sum(times_s),
        service_ss=sum(t * t for t in times_s),
        wait_s=sum(waits_s),
        wait_ss=sum(t * t for t in waits_s),
        **{"longest_service_s": max(times_s, default=0.0)} | told,
    )


def operator(name="split", *, arrivals=(10,) * 10, bin_s=1.0, **fields):
    fields = {"processors": (processor("p0"), processor("p1"))} | fields
    fields = {"running": len(fields["processors"])} | fields
    fields = {"wanted": fields["running"], "backlog": 0} | fields
    return OperatorReport(name=name, arrivals=tuple(arrivals), bin_s=bin_s, **fields)


def pull(*operators, since_s=0.0, at_s=10.0, roots=None, **machine):
    """Return a pull of both operators, as they are usually but for those given."""
    given = {report.name: report for report in operators}
    seconds = round(at_s - since_s)
    usual = {
        "split": operator("split", arrivals=(10,) * seconds),
        "count": operator("count", arrivals=(30,) * seconds),
    }
    return Pull(
        since_s=since_s,
        at_s=at_s,
        operators=tuple((usual | given).values()),
        roots=roots or root_report(),
        **machine,
    )


def root_report(entered=100, times_s=(0.5,) * 100, **fields):
    sketch = Sketch.of(times_s)
    made = RootReport(entered=entered, completed=len(times_s), completions=sketch, sums=sketch)
    return replace(made, **fields)


def merged(first, later):
    """Return two pulls, one after the other, as one."""
    roots, after = first.roots, later.roots
    return replace(
        first,
        at_s=later.at_s,
        operators=tuple(
            replace(
                one,
                processors=counters.merged((*one.processors, *two.processors)),
                arrivals=(*one.arrivals, *two.arrivals),
            )
            for one, two in zip(first.operators, later.operators, strict=True)
        ),
        roots=replace(
            roots,
            entered=roots.entered + after.entered,
            completed=roots.completed + after.completed,
            completions=roots.completions + after.completions,
            sums=roots.sums + after.sums,
        ),
    )

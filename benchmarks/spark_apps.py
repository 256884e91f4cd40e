"""An application that computes, on Spark: predicted and measured means of its allocations.

    python benchmarks/spark_apps.py vld [--rate 3] [--most 2] [--blocks 4] [--block 15]

Operators get 1 to --most processors each (native ones keep theirs), so long as processors of
Python operators are at most one more than there are cores. One start; allocations are applied
live, one after the other, there and back again, while samples arrive as a Poisson stream.
Printed are the mean of what roots take (the sojourns of all records of a tree added up) with
its 95 % interval over blocks, and what the model predicts from rates, service times,
variability and cores as measured over all. The default run takes ten minutes for `vld`.
"""

import argparse
import os
import sys
from dataclasses import replace
from itertools import product

from blocks import interval, observation_of
from sojourn.decide.plan import Plan
from sojourn.errors import SojournError
from sojourn.knowledge import allocation_text
from sojourn.measure.observed import observed
from sojourn.model.network import mean_s
from sojourn.service.first_plan import first_topology
from sojourn.spark.driver.settings import SparkSettings
from sojourn.spark.driver.spark_engine import SparkEngine
from sojourn.topology import Arrival
from sojourn_papers.apps.catalogue import entry

_BATCH_S = 3600.0
_TRACE_PER_S = 1e6
_SETTLING_S = 5.0


def allocations(app, most):
    """Return those that this machine can carry."""
    python = [name for name, operator in app.operators.items() if not operator.native]
    cores = len(os.sched_getaffinity(0))
    native = {name: o.min_processors for name, o in app.operators.items() if o.native}
    for some in product(range(1, most + 1), repeat=len(python)):
        # those that hardly compute need no core of their own
        if sum(k - 1 for k in some) <= cores:
            allocation = native | dict(zip(python, some, strict=True))
            yield {name: allocation[name] for name in app.operators}


def followed(topology, app):
    """Return the topology without operators inside Spark, as roots are followed.

    A root is followed up to such an operator, and what that sends are roots of their own.
    """
    native = {name for name, operator in app.operators.items() if operator.native}
    arrivals = [arrival for arrival in topology.arrivals if arrival.into not in native]
    for name in native:
        arrivals += [
            Arrival(name=f"{name} to {to}", per_s=topology.rates[name] * each, into=to)
            for to, each in topology.operator[name].emits.items()
        ]
    operators = [
        replace(o, emits={to: each for to, each in o.emits.items() if to not in native})
        for o in topology.operators
        if o.name not in native
    ]
    return replace(topology, arrivals=tuple(arrivals), operators=tuple(operators))


def measured(engine, some, asked):
    """Return the blocks of each allocation, there and back again."""
    blocks = {allocation_text(one): [] for one in some}
    for one in [*some, *reversed(some)]:
        sys.stderr.write(f"{allocation_text(one)}\n")
        engine.apply(Plan.here(one))
        engine.observe(engine.now_s + _SETTLING_S)
        for _ in range((asked.blocks + 1) // 2):
            blocks[allocation_text(one)].append(engine.observe(engine.now_s + asked.block))
    return blocks


def main():
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", help="of the application: see `sojourn apps`")
    parser.add_argument("--rate", type=float, default=3.0, help="records per second")
    parser.add_argument("--most", type=int, default=2, help="processors of an operator")
    parser.add_argument("--blocks", type=int, default=4, help="of each allocation")
    parser.add_argument("--block", type=float, default=15.0, metavar="SECONDS")
    asked = parser.parse_args()
    made = entry(asked.name)
    app = made.app
    some = list(allocations(app, asked.most))
    rate = asked.rate / len(app.samples)
    topology = first_topology(app, dict.fromkeys(app.sources, rate))
    settings = SparkSettings(
        batch_s=_BATCH_S,
        trace_per_s=_TRACE_PER_S,
        load=dict.fromkeys(app.samples, ((0.0, rate), (3600.0, rate))),
    )
    with SparkEngine(app, made.address, settings) as engine:
        engine.start(topology, Plan.here(some[-1]))
        engine.observe(engine.now_s + 4 * _SETTLING_S)  # Java is slow at first
        blocks = measured(engine, some, asked)
    observation = observation_of([pull for each in blocks.values() for pull in each], topology)
    seen = observed(topology, observation)
    print(f"{asked.name}: {seen.arrivals_per_s:.2f} roots per s, {seen.cores or 0:.2f} cores")
    for operator in seen.operators:
        print(
            f"  {operator.name:<12} {1e3 * operator.service_s:8.2f} ms, scv "
            f"{operator.service_scv:.2f}, {1e3 * (operator.cpu_s or 0):.2f} ms computing, "
            f"{1e3 * operator.transfer_s:.1f} ms on the way to it"
        )
    model = followed(seen, app)
    print(f"{'allocation':<14}{'roots':>7}{'measured, ms':>20}{'predicted':>11}{'off':>8}")
    for one in some:
        pulls = blocks[allocation_text(one)]
        numbers = [pull.roots.sums.number for pull in pulls]
        mean = interval([pull.roots.sums.mean_s for pull in pulls], numbers)
        try:
            predicted_s = mean_s(model, {o.name: one[o.name] for o in model.operators})
            off = f"{1e3 * predicted_s:11.1f}{predicted_s / mean.value - 1:+8.1%}"
        except SojournError as error:
            off = f"  {error}"
        print(f"{allocation_text(one):<14}{sum(numbers):7d}{mean.in_ms():>20}{off}")


if __name__ == "__main__":
    main()

"""DRS-15, Figs. 6 and 7, on Spark: six allocations of 22 processors, measured and predicted.

    python benchmarks/spark_allocations.py [--faster 4] [--rounds 3] [--blocks 4]
                                           [--block 4] [--short] [--json FILE]

The operators of examples/vld.yaml wait, all times divided by --faster, and rates multiplied by
it, so processors are as busy as there. One start; allocations are applied live, one after the
other, in several rounds, so that a drift hits all alike. In a round all get the same records
at the same times: what differs between two allocations is then not chance, and is compared
block by block. Batches are longer than the run, so no commit falls into some blocks only.

Printed are the mean of what roots take (the sojourns of all records of a tree added up) with
its 95 % interval over blocks, what the model predicts from measured rates and service times
(and with the transfers that hosts measured),
whether the order is the predicted one wherever it is measurable, whether any allocation
measurably beats the recommended one, and how far off predictions are that were calibrated
with two of the six. It takes 6.5 min; --short 70 s.
"""

import argparse
import json
import sys
import tempfile
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

from blocks import interval, observation_of, without_transfers
from producing import Producing, poisson_s
from sojourn.app.loading import load
from sojourn.decide.assign import assign
from sojourn.decide.plan import Plan
from sojourn.errors import BadInput
from sojourn.knowledge import allocation_text
from sojourn.measure.observed import observed
from sojourn.model.calibration import Pair, fit
from sojourn.model.network import mean_s, predict
from sojourn.spark.driver.load.offered_load import payload
from sojourn.spark.driver.settings import SparkSettings
from sojourn.spark.driver.spark_engine import SparkEngine
from sojourn.topology import Topology
from sojourn.topology.file import read_topology
from sojourn_papers.experiments.papers.drs15_fig6 import VLD_SIX

VLD = Path(__file__).resolve().parents[1] / "examples" / "vld.yaml"
SIX = (VLD_SIX.recommended, *VLD_SIX.others)
FORMS = ("per_hop", "factor")
AIM = 0.10

_BATCH_S = 3600.0
_TRACE_PER_S = 1e6
# After a change queues are empty; they are as long as ever after a few times what roots take.
_SETTLING_SOJOURNS = 6
_LOOK_S = 0.5
_PATIENCE_S = 60.0
# Records of different rounds are different ones.
_RECORDS_PER_ROUND = 1_000_000


@dataclass(frozen=True)
class Measured:
    """What an allocation did, block by block: of two allocations blocks belong together."""

    allocation: dict[str, int]
    pulls: list

    @property
    def name(self):
        """The allocation."""
        return allocation_text(self.allocation)

    @property
    def blocks_s(self):
        """The mean of each block."""
        return [pull.roots.sums.mean_s for pull in self.pulls]

    @property
    def mean(self):
        """What roots took."""
        return interval(self.blocks_s, [pull.roots.sums.number for pull in self.pulls])

    @property
    def roots(self):
        """How many roots were followed."""
        return sum(pull.roots.sums.number for pull in self.pulls)

    def above(self, other):
        """Return by how much this took longer, block by block."""
        return interval(
            mine - its for mine, its in zip(self.blocks_s, other.blocks_s, strict=True)
        )


def faster(topology, times):
    """Return the topology with all its times that many times as short."""
    return replace(
        topology,
        arrivals=tuple(replace(a, per_s=a.per_s * times) for a in topology.arrivals),
        operators=tuple(replace(o, service_s=o.service_s / times) for o in topology.operators),
    )


def as_file(topology, folder):
    """Return where *topology* is written, for hosts to find it."""
    told = {
        "format": 1,
        "name": topology.name,
        "arrivals": {a.name: {"per_s": a.per_s, "into": a.into} for a in topology.arrivals},
        "operators": {
            o.name: {"service_s": o.service_s, "emits": dict(o.emits)}
            for o in topology.operators
        },
    }
    path = Path(folder) / "topology.json"
    path.write_text(json.dumps(told))
    return str(path)


def settled(engine):
    """Return when nothing waits any more and all processors are there."""
    until_s = engine.now_s + _PATIENCE_S
    while engine.now_s < until_s:
        pull = engine.observe(engine.now_s + _LOOK_S)
        if not pull.roots.completed and all(
            report.backlog == 0 and report.running == report.wanted for report in pull.operators
        ):
            return
    raise SystemExit("what waits is not worked off; use a machine that does nothing else")


def measured(engine, topology, topic, asked):
    """Return what each of the six did."""
    allocations = [dict(zip(topology.operator, some, strict=True)) for some in SIX]
    pulls = {allocation_text(allocation): [] for allocation in allocations}
    arrival, settling_s = (
        topology.arrivals[0],
        _SETTLING_SOJOURNS * mean_s(topology, allocations[0]),
    )
    lasts_s = settling_s + asked.blocks * asked.block + _LOOK_S
    for number in range(-1, asked.rounds):  # in the first Java is slow, and it does not count
        due_s = poisson_s(arrival.per_s, seed=number, lasts_s=lasts_s)
        first = (number + 1) * _RECORDS_PER_ROUND
        # there and back again, so that a drift is not for or against any of them
        order = allocations[:1] if number < 0 else allocations[:: 1 if number % 2 else -1]
        for allocation in order:
            name = allocation_text(allocation)
            sys.stderr.write(f"round {number + 1}: {name}\n")
            engine.apply(Plan.here(allocation))
            settled(engine)
            with Producing(
                engine.servers, topic, due_s, lambda n, first=first: (payload(first + n), [])
            ):
                begins_s = engine.now_s + settling_s
                engine.observe(begins_s)
                blocks = [
                    engine.observe(begins_s + block * asked.block)
                    for block in range(1, asked.blocks + 1)
                ]
            if number >= 0:
                pulls[name] += blocks
    return [
        Measured(allocation, pulls[allocation_text(allocation)]) for allocation in allocations
    ]


@dataclass(frozen=True)
class Predicted:
    """The topology as it was measured, and the mean that the model says of each allocation.

    The model is that of service and queueing, *seen* has what hosts measured of the way to
    them as well.
    """

    seen: Topology
    model: str

    @property
    def topology(self):
        """What was measured, with nothing on the wires."""
        return without_transfers(self.seen)

    def with_transfers_s(self, allocation):
        """Return the predicted mean with what was measured on the wires."""
        return mean_s(self.seen, allocation, model=self.model)

    def mean_s(self, allocation, calibration=None):
        """Return the predicted mean."""
        predicted = predict(
            self.topology, allocation, model=self.model, calibration=calibration
        )
        return predicted.mean_s

    def pair(self, some):
        """Return what a calibration is fitted to."""
        return Pair(
            estimate_s=self.mean_s(some.allocation),
            measured_s=some.mean.value,
            hops=sum(self.topology.visits.values()),
        )


def show_means(six, said):
    """Print what each did, and what was predicted."""
    print(
        f"{'allocation':<12}{'roots':>7}{'measured, ms':>17}{'predicted':>11}{'off':>8}"
        f"{'with transfers':>16}{'off':>8}"
    )
    for some in sorted(six, key=lambda s: said.mean_s(s.allocation)):
        line = f"{some.name:<12}{some.roots:7d}{some.mean.in_ms():>17}"
        for wide, predicted_s in (
            (11, said.mean_s(some.allocation)),
            (16, said.with_transfers_s(some.allocation)),
        ):
            off = predicted_s / some.mean.value - 1
            line += f"{1e3 * predicted_s:{wide}.1f}{off:+8.1%}"
        print(line)


def orders(six, said):
    """Return the pairs by what is measurable of their order: as predicted, not, unknown."""
    same, wrong, unknown = [], [], []
    ranked = sorted(six, key=lambda s: said.mean_s(s.allocation))
    for low, high in combinations(ranked, 2):
        apart = high.above(low)
        where = same if apart.low > 0 else wrong if apart.high < 0 else unknown
        where.append(f"{low.name} < {high.name} (by {apart.in_ms()} ms)")
    return same, wrong, unknown


def show_orders(six, said, declared):
    """Print whether the order is the predicted one, and whether the best is the best."""
    same, wrong, unknown = orders(six, said)
    print(
        f"\norder of pairs, block by block: {len(same)} as predicted, {len(wrong)} the other "
        f"way round, {len(unknown)} too close to tell"
    )
    for line in wrong:
        print(f"  the other way round: {line}")
    for name, topology in (("declared", declared), ("measured", said.topology)):
        advice = assign(topology, sum(SIX[0]), model=said.model).allocation
        print(f"recommended by what was {name}: {allocation_text(advice)}")
        best = next((some for some in six if some.allocation == advice), None)
        if best is None:
            print("  which is none of the six")
            continue
        others = [some for some in six if some is not best]
        beaten = [some.name for some in others if some.above(best).high < 0]
        print(f"  measurably beaten by: {', '.join(beaten) or 'none'}")
        for some in others:
            print(f"  {some.name:<10} above it by {some.above(best).in_ms()} ms")


def errors_of(form, fitted, others, said):
    """Return how far off predictions of *others* are, calibrated with those *fitted*."""
    calibration = fit([said.pair(some) for some in fitted], form=form)
    return {
        some.name: said.mean_s(some.allocation, calibration) / some.mean.value - 1
        for some in others
    }, calibration


def show_calibrated(six, said):
    """Print how far off calibrated predictions are; return it."""
    ranked = sorted(six, key=lambda s: said.mean_s(s.allocation))
    chosen = ranked[0], ranked[-1]
    found = {}
    print(f"\ncalibrated with {chosen[0].name} and {chosen[1].name}, the others are off by")
    for form in FORMS:
        try:
            off, calibration = errors_of(form, chosen, ranked[1:-1], said)
        except BadInput as error:
            print(f"  {form:<8} none: {error}")
            continue
        shape = (
            f"{1e3 * calibration.per_hop_s:.1f} ms per hop"
            if form == "per_hop"
            else f"times {calibration.coefficients[1]:.3f}"
        )
        each = ", ".join(f"{name} {error:+.1%}" for name, error in off.items())
        outside = sum(abs(error) > AIM for error in off.values())
        print(f"  {form:<8} {each} ({shape}); outside {AIM:.0%}: {outside} of {len(off)}")
        found[form] = off
    print("calibrated with any two of the six, the other four")
    for form in FORMS:
        off = []
        for pair in combinations(six, 2):
            others = [some for some in six if some not in pair]
            try:
                off += errors_of(form, pair, others, said)[0].values()
            except BadInput:
                continue
        if off:
            outside = sum(abs(error) > AIM for error in off)
            print(
                f"  {form:<8} outside {AIM:.0%}: {outside} of {len(off)} "
                f"({outside / len(off):.0%}); furthest off {max(off, key=abs):+.1%}"
            )
    return found


def main():
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--faster", type=float, default=4.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--blocks", type=int, default=4, help="in a round, of each allocation")
    parser.add_argument("--block", type=float, default=4.0, metavar="SECONDS")
    parser.add_argument("--model", default="mmk", help="of a station; DRS has mmk")
    parser.add_argument("--short", action="store_true", help="one round of short blocks")
    parser.add_argument("--json", type=Path, metavar="FILE")
    asked = parser.parse_args()
    if asked.short:
        asked.rounds, asked.blocks, asked.block = 1, 3, 1.5
    topology = faster(read_topology(VLD), asked.faster)
    with tempfile.TemporaryDirectory() as folder:
        address = as_file(topology, folder)
        app = load(address)
        settings = SparkSettings(
            batch_s=_BATCH_S, trace_per_s=_TRACE_PER_S, broker_secured=False
        )
        with SparkEngine(app, address, settings) as engine:
            engine.start(topology, Plan.here(dict(zip(topology.operator, SIX[0], strict=True))))
            topic = app.topic(topology.arrivals[0].name)
            six = measured(engine, topology, topic, asked)
            restarts = sum(engine.health().restarts.values())
    observation = observation_of([pull for some in six for pull in some.pulls], topology)
    said = Predicted(observed(topology, observation), asked.model)
    print(
        f"{asked.faster:g} times as fast as examples/vld.yaml; measured over all: "
        f"{said.topology.arrivals_per_s:.1f} roots per s"
    )
    for operator in said.seen.operators:
        declared_s = topology.operator[operator.name].service_s
        took_s = observation.operators[operator.name].service_s
        print(
            f"  {operator.name:<10} {1e3 * took_s:.1f} ms, scv "
            f"{operator.service_scv:.2f} (declared {1e3 * declared_s:.1f} ms); "
            f"{1e3 * operator.transfer_s:.1f} ms on the way to it"
        )
    print(f"restarts: {restarts}\n")
    show_means(six, said)
    show_orders(six, said, topology)
    off = show_calibrated(six, said)
    if asked.json:
        told = {
            "model": asked.model,
            "allocations": {
                some.name: {
                    "mean_s": some.mean.value,
                    "half_width_s": some.mean.half_width,
                    "predicted_s": said.mean_s(some.allocation),
                    "with_transfers_s": said.with_transfers_s(some.allocation),
                    "blocks_s": some.blocks_s,
                }
                for some in six
            },
            "calibrated_off": off,
        }
        asked.json.write_text(json.dumps(told, indent=2))


if __name__ == "__main__":
    main()

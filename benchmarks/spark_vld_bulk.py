"""Features that come in bulk: latency as measured, and as `mmk` and `gigk` predict it.

    python benchmarks/spark_vld_bulk.py [--rates 0.6,1.2] [--for 40] [--match 1] [--json]
    python benchmarks/spark_vld_bulk.py --simulate --for 4000

Runs `sojourn_papers.apps.vld:bulk` on Spark, where a frame becomes a thousand features at once.
There is one processor of each operator (`--match` for more that match). At each rate of frames
it is measured for so long. Both models get the rates, service times, transfers and cores that
were measured at this rate, and `gigk` the variability of arrivals and service times too.
Printed are

- the sojourn of a feature at `match`: transfer, wait and service, on average;
- E[T], the sojourns of all records of a frame in sum, as the papers define it;
- completion: from a frame's birth until its last feature is aggregated.
"""

import argparse
import json
import sys
from dataclasses import asdict, dataclass

from blocks import interval, observation_of
from sojourn.decide.plan import Plan
from sojourn.errors import SojournError
from sojourn.measure.aggregate import aggregate
from sojourn.measure.observed import observed
from sojourn.model.network import predict
from sojourn.simulate.simulator import Simulator
from sojourn.spark.driver.settings import SparkSettings
from sojourn.spark.driver.spark_engine import SparkEngine
from sojourn_papers.apps.catalogue import entry

MODELS = ("mmk", "gigk")
_BATCH_S = 3600.0
_BLOCKS = 10
_TRACE_PER_S = 1e6
# Java is slow at first.
_WARMING_S, _SETTLING_S, _BLOCK_S = 30.0, 10.0, 10.0


@dataclass(frozen=True)
class Figure:
    """A measured mean, half the width of its 95 % interval, and what each model predicts."""

    measured_s: float
    half_width_s: float
    predicted_s: dict

    def off(self, model):
        """Return how far a prediction is off, as a part of what was measured."""
        predicted_s = self.predicted_s.get(model)
        return None if predicted_s is None else predicted_s / self.measured_s - 1


@dataclass(frozen=True)
class Measured:
    """What was measured at one rate of frames."""

    frames: int
    frames_per_s: float
    features_per_s: float
    busy: float
    arrival_scv: float
    service_ms: float
    service_scv: float
    figures: dict
    unpredicted: dict


def measured(pulls, topology, allocation):
    """Return the figures of these pulls, and what the models make of them."""
    observation = observation_of(pulls, topology)
    seen = observed(topology, observation)
    predictions, unpredicted = {}, {}
    for model in MODELS:
        try:
            predictions[model] = predict(seen, allocation, model=model)
        except SojournError as error:
            unpredicted[model] = str(error)
    blocks = [aggregate(pull, topology, every_s=pull.at_s - pull.since_s) for pull in pulls]
    for block in blocks:
        if not block.usable:
            sys.stderr.write(f"a block is left out: {block.reason}\n")
    blocks = [block for block in blocks if block.usable]
    match = observation.operators["match"]
    return Measured(
        frames=observation.sums.number,
        frames_per_s=seen.arrivals_per_s,
        features_per_s=match.arrivals_per_s,
        busy=match.utilisation,
        arrival_scv=match.arrival_scv,
        service_ms=1e3 * match.service_s,
        service_scv=match.service_scv,
        figures={
            "sojourn at match": _figure(
                [
                    (b.operators["match"].sojourn_s, b.operators["match"].samples)
                    for b in blocks
                ],
                {m: p.operators["match"].sojourn_s for m, p in predictions.items()},
            ),
            "E[T]": _figure(
                [(b.sums.mean_s, b.sums.number) for b in blocks],
                {m: p.mean_s for m, p in predictions.items()},
            ),
            "completion": _figure(
                [(b.completions.mean_s, b.completions.number) for b in blocks],
                {m: p.completion_mean_s for m, p in predictions.items()},
            ),
        },
        unpredicted=unpredicted,
    )


def _figure(blocks, predicted_s):
    some = [(value, number) for value, number in blocks if number]
    mean = interval([value for value, _ in some], [number for _, number in some])
    return Figure(mean.value, mean.half_width, predicted_s)


def ran(rates, lasts_s, allocation):
    """Return what was measured at each rate, one after the other."""
    made = entry("vld-bulk")
    app, points = made.app, []
    each_s = _SETTLING_S + lasts_s
    begins_s = [_WARMING_S + number * each_s for number in range(len(rates))]
    for begin_s, rate in zip(begins_s, rates, strict=True):
        points += [(begin_s, rate), (begin_s + each_s, rate)]
    points.insert(0, (0.0, rates[0]))
    settings = SparkSettings(
        batch_s=_BATCH_S, trace_per_s=_TRACE_PER_S, load={"frames": tuple(points)}
    )
    topology = app.topology({"frames": rates[0]})
    pulled = []
    with SparkEngine(app, made.address, settings) as engine:
        engine.start(topology, Plan.here(allocation))
        for begin_s, rate in zip(begins_s, rates, strict=True):
            engine.observe(begin_s + _SETTLING_S)
            sys.stderr.write(f"{rate:g} frames per second\n")
            number = max(2, round(lasts_s / _BLOCK_S))
            pulled.append([engine.observe(engine.now_s + _BLOCK_S) for _ in range(number)])
    # predicting takes seconds, in which the load would go on
    return [measured(pulls, topology, allocation) for pulls in pulled]


def simulated(rates, lasts_s, allocation):
    """Return the same by the simulator, with the hints of the application."""
    pulled = []
    for rate in rates:
        topology = entry("vld-bulk").app.topology({"frames": rate})
        engine = Simulator(sample_every=1)
        engine.start(topology, Plan.here(allocation))
        engine.observe(_WARMING_S)
        pulls = [engine.observe(engine.now_s + lasts_s / _BLOCKS) for _ in range(_BLOCKS)]
        pulled.append((pulls, topology))
    return [measured(pulls, topology, allocation) for pulls, topology in pulled]


def table(found):
    """Return the rows as text, a line each."""
    yield (
        "| frames/s | frames | features/s | `match` busy | arrival scv | service | service scv "
        "| | measured | `mmk` | `gigk` |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|---|"
    for each in found:
        load = (
            f"| {each.frames_per_s:.2f} | {each.frames} | {each.features_per_s:.0f} | "
            f"{each.busy:.0%} | {each.arrival_scv or 0:.0f} | {each.service_ms:.2f} ms | "
            f"{each.service_scv:.2f} "
        )
        for name, figure in each.figures.items():
            cells = " | ".join(_cell(figure, model) for model in MODELS)
            yield (
                f"{load}| {name} | {_time(figure.measured_s)} ± {_time(figure.half_width_s)} "
                f"| {cells} |"
            )
            load = "| " * 7
        for model, problem in each.unpredicted.items():
            yield f"{load}| {model}: {problem} | | | |"


def _cell(figure, model):
    off = figure.off(model)
    return "" if off is None else f"{_time(figure.predicted_s[model])} ({off:+.0%})"


def _time(seconds):
    return f"{1e3 * seconds:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"


def main():
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rates", default="0.6,1.2", help="frames per second, in turn")
    parser.add_argument("--for", type=float, default=40.0, dest="lasts_s", metavar="SECONDS")
    parser.add_argument("--match", type=int, default=1, help="processors that match")
    parser.add_argument("--simulate", action="store_true", help="without Spark")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--short", action="store_true", help="one rate, to see that it runs")
    asked = parser.parse_args()
    rates = [float(rate) for rate in asked.rates.split(",")]
    if asked.short:
        rates, asked.lasts_s = rates[:1], 40.0
    allocation = {"extract": 1, "match": asked.match, "aggregate": 1}
    found = (simulated if asked.simulate else ran)(rates, asked.lasts_s, allocation)
    if asked.json:
        print(json.dumps([asdict(each) for each in found], indent=2))
    else:
        print("\n".join(table(found)))


if __name__ == "__main__":
    main()

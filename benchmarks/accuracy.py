"""How far predictions are off from a simulation, for a set of small named topologies.

Prints one row per case and model: by how many percent each predicted figure is above (+)
or below (-) the simulated one, and half the width of the simulation's 95 % confidence
interval in the same percent. What the figures mean is in docs/background/accuracy.md.
"""

import json
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from random import Random

import numpy as np

from sojourn.model.network import predict
from sojourn.simulate.run import simulate as simulate_keys
from sojourn.topology import Arrival, Operator, Topology
from sojourn.topology.file import read_topology

HERE = Path(__file__).resolve().parents[1]
sys.path.append(str(HERE / "tests"))
from theory.tree_simulation import Roots, estimate, simulate  # noqa: E402

LEAST_ROOTS = 10_000

FIGURES: Mapping[str, Callable[[Roots], tuple[np.ndarray, Callable]]] = {
    "mean_s": lambda roots: (roots.total_s, np.mean),
    "completion_mean_s": lambda roots: (roots.completion_s, np.mean),
    "std_s": lambda roots: (roots.completion_s, np.std),
    "p50": lambda roots: (roots.completion_s, lambda times: np.quantile(times, 0.50)),
    "p95": lambda roots: (roots.completion_s, lambda times: np.quantile(times, 0.95)),
    "p99": lambda roots: (roots.completion_s, lambda times: np.quantile(times, 0.99)),
}


@dataclass(frozen=True)
class Case:
    """A topology with its processors, and the models whose predictions are compared.

    *described* holds what else a user might say of the same topology, for `gigk`.
    The closer a queue is to full, the longer its busy spells, and the more roots it takes
    to learn the same about it: *effort* times as many.
    """

    name: str
    topology: Topology
    allocation: Mapping[str, int]
    models: Sequence[str] = ("gigk",)
    described: Mapping[str, Topology] = field(default_factory=dict)
    effort: int = 1


@dataclass(frozen=True)
class Off:
    """One predicted figure beside the simulated one."""

    predicted_s: float
    simulated_s: float
    half_width_s: float

    @property
    def percent(self) -> float:
        """By how many percent the prediction is too high."""
        return 100 * (self.predicted_s / self.simulated_s - 1)

    def __str__(self) -> str:
        return f"{self.percent:+.1f} ±{100 * self.half_width_s / self.simulated_s:.1f}"


@dataclass(frozen=True)
class Row:
    """All figures of one case and model."""

    case: str
    model: str
    roots: int
    figures: Mapping[str, Off]


def at(
    name: str, busy: float, *, processors: int = 1, visits: float = 1.0, **fields: object
) -> tuple[Operator, int]:
    """Return an operator whose processors are *busy* at one root per second."""
    return Operator(name=name, service_s=busy * processors / visits, **fields), processors


def case(
    name: str, *stations: tuple[Operator, int], scv: float = 1.0, **fields: object
) -> Case:
    """Return a case where one root per second enters at the first station."""
    operators = tuple(operator for operator, _ in stations)
    arrival = Arrival(name="roots", per_s=1.0, into=operators[0].name, scv=scv)
    topology = Topology(name=name, arrivals=(arrival,), operators=operators)
    return Case(name, topology, {o.name: k for o, k in stations}, **fields)


def example(name: str, *processors: int, **fields: object) -> Case:
    """Return one of the examples with its processors, in the order of its operators."""
    topology = read_topology(HERE / "examples" / f"{name}.yaml")
    allocation = dict(zip(topology.operator, processors, strict=True))
    return Case(
        f"{name}.yaml, {':'.join(map(str, processors))}", topology, allocation, **fields
    )


def described(told: Case, name: str, operator: str, **fields: object) -> Case:
    """Return the case with one more prediction, where *operator* has other fields."""
    topology = told.topology
    changed = tuple(
        replace(o, **fields) if o.name == operator else o for o in topology.operators
    )
    return replace(told, described={name: replace(topology, operators=changed)})


def tandem(name: str, service_scv: float, *, measured_scv: float) -> Case:
    """Return two operators in a row with times other than exponential.

    *measured_scv* is that of the gaps between the records that leave the first.
    """
    told = case(
        name,
        at("first", 0.8, processors=2, service_scv=service_scv, emits={"second": 1}),
        at("second", 0.8, service_scv=service_scv),
        models=("gigk", "mmk"),
        effort=2,
    )
    return described(told, "measured", "second", arrival_scv=measured_scv)


def fan_out(copies: int, busy: float, processors: int, **fields: object) -> Case:
    """Return an operator that sends *copies* records at once to another."""
    return case(
        f"fan-out {copies}, k = {processors}, at {busy}",
        at("split", 0.1, emits={"work": copies}),
        at("work", busy, processors=processors, visits=copies),
        **fields,
    )


def loop(gain: float, **fields: object) -> Case:
    """Return two operators of which the second sends a part back to the first."""
    again = 1 / (1 - gain)
    return case(
        f"loop with gain {gain}" + (f", arrivals with scv {fields['scv']}" if fields else ""),
        at("work", 0.7, visits=again, emits={"check": 1}),
        at("check", 0.7, processors=2, visits=again, emits={"work": gain}),
        **fields,
    )


def round_robin(processors: int, **fields: object) -> Case:
    """Return a station that deals its records out in turn."""
    return case(
        f"round robin, k = {processors}, at 0.8",
        at("work", 0.8, processors=processors, dispatch="round_robin"),
        models=("round_robin",),
        **fields,
    )


def keyed(processors: int, busy: float, key_busy: float, **fields: object) -> Case:
    """Return a station with a key that keeps one processor busy in a part of the time."""
    operator, k = at("count", busy, processors=processors, **fields)
    part = key_busy / operator.service_s
    name = f"key {part:.3g}, k = {processors}, at {busy}, key at {key_busy}"
    told = case(
        name + (f", service with scv {fields['service_scv']}" if fields else ""),
        (replace(operator, hottest_key=part), k),
        effort=5,
    )
    return described(told, "no key", "count", hottest_key=0.0)


def cases() -> Iterator[Case]:
    """Yield the cases in the order they are printed."""
    yield example("vld", 10, 11, 1)
    yield case(
        "two stations, at 0.2",
        at("first", 0.2, processors=4, emits={"second": 1}),
        at("second", 0.2, processors=2),
    )
    yield case("M/M/1, at 0.9", at("work", 0.9), effort=5)
    yield case("M/M/4, at 0.95", at("work", 0.95, processors=4), effort=8)
    yield case(
        "one_of split",
        at("split", 0.7, emits={"often": 0.7, "seldom": 0.3}, route="one_of"),
        at("often", 0.7, visits=0.7),
        at("seldom", 0.7, processors=2, visits=0.3),
    )
    yield case(
        "constant service, at 0.8", at("work", 0.8, service_scv=0), models=("gigk", "mmk")
    )
    yield tandem("constant service, tandem at 0.8", 0, measured_scv=0.56)
    yield tandem("regular service (0.25), tandem at 0.8", 0.25, measured_scv=0.68)
    yield tandem("bursty service (4), tandem at 0.8", 4, measured_scv=2.4)
    for scv in (0.2, 4):
        for busy in (0.3, 0.8):
            yield case(
                f"arrivals with scv {scv}, at {busy}",
                at("work", busy),
                scv=scv,
                models=("gigk", "mmk"),
                effort=2,
            )
    yield fan_out(3, 0.3, processors=4)
    yield fan_out(3, 0.8, processors=4)
    yield fan_out(3, 0.8, processors=1)
    yield fan_out(10, 0.3, processors=4)
    yield fan_out(10, 0.8, processors=10)
    yield case(
        "two branches, then a join",
        at("split", 0.4, emits={"left": 1, "right": 1}),
        at("left", 0.7, emits={"join": 1}),
        at("right", 0.7, processors=2, emits={"join": 1}),
        at("join", 0.7, visits=2),
    )
    yield loop(0.3)
    yield loop(0.6)
    yield loop(0.3, scv=4)
    yield example("fpd", 6, 13, 3)
    yield example("vld-bursty", 3, 3, 1, models=("gigk", "mmk"))
    yield example("vld-bursty", 2, 4, 1, models=("gigk", "mmk"))
    yield round_robin(2, effort=2)
    yield round_robin(5, effort=2)
    yield described(round_robin(10, effort=2), "as shared", "work", dispatch="shared")
    yield case(
        "round robin, k = 10, constant, at 0.9",
        at("work", 0.9, processors=10, dispatch="round_robin", service_scv=0),
        models=("round_robin",),
    )
    for processors, busy in ((2, 0.5), (2, 0.8), (2, 0.95), (4, 0.8), (10, 0.5), (10, 0.8)):
        for key_busy in (0.3, 0.6, 0.9):
            yield keyed(processors, busy, key_busy)
    yield keyed(10, 0.8, 0.8, service_scv=0)
    yield keyed(10, 0.8, 0.8, service_scv=4)
    yield case(
        "key 0.45, k = 4, at 0.5, key at 0.9, fan-out 2",
        at("split", 0.1, emits={"count": 2}),
        at("count", 0.5, processors=4, visits=2, hottest_key=0.45),
        effort=5,
    )


def compare(compared: Case, roots: int, seed: int) -> list[Row]:
    """Return the rows of one case; its random numbers depend on the seed and its name."""
    roots *= compared.effort
    random = Random(f"{seed} {compared.name}")
    if any(operator.hottest_key > 0 for operator in compared.topology.operators):
        simulated = with_keys(compared, roots, random.randrange(1 << 30))
    else:
        simulated = simulate(compared.topology, compared.allocation, roots=roots, random=random)
    estimates = {
        name: estimate(*figure(simulated), confidence=0.95) for name, figure in FIGURES.items()
    }
    predictions = {
        model: predicted_s(compared.topology, compared.allocation, model)
        for model in compared.models
    }
    for name, topology in compared.described.items():
        predictions[f"gigk, {name}"] = predicted_s(topology, compared.allocation, "gigk")
    return [
        Row(
            compared.name,
            model,
            roots,
            {n: Off(predicted[n], e.value, e.half_width) for n, e in estimates.items()},
        )
        for model, predicted in predictions.items()
    ]


def with_keys(compared: Case, roots: int, seed: int) -> Roots:
    """Return what happens to *roots* in the simulator of the package, which knows keys.

    `tests/theory/test_keys.py` compares it with the queue of a host.
    """
    done: list[np.ndarray] = []
    simulate_keys(
        compared.topology,
        compared.allocation,
        roots=roots * 10 // 9,  # the first tenth is left out
        seed=seed,
        each=lambda _, completed: done.append(completed.copy()),
    )
    counted = np.concatenate(done)[-roots:]
    return Roots(counted["completion_s"], counted["sum_s"])


def predicted_s(
    topology: Topology, allocation: Mapping[str, int], model: str
) -> dict[str, float]:
    """Return the predicted figures."""
    predicted = predict(topology, allocation, model=model)
    return {
        "mean_s": predicted.mean_s,
        "completion_mean_s": predicted.completion_mean_s,
        "std_s": predicted.std_s,
        **predicted.percentiles_s,
    }


def table(rows: Sequence[Row]) -> str:
    """Return the rows as a table for a terminal, which is Markdown too."""
    heads = ["case", "model", *FIGURES]
    cells = [
        [row.case, row.model, *(str(row.figures[name]) for name in FIGURES)] for row in rows
    ]
    widths = [max(len(line[i]) for line in [heads, *cells]) for i in range(len(heads))]
    rule = ["-" * width for width in widths[:2]]
    rule += ["-" * (width - 1) + ":" for width in widths[2:]]
    lines = []
    for line in [heads, rule, *cells]:
        names = [cell.ljust(width) for cell, width in zip(line[:2], widths[:2], strict=True)]
        figures = [cell.rjust(width) for cell, width in zip(line[2:], widths[2:], strict=True)]
        lines.append("| " + " | ".join([*names, *figures]) + " |")
    return "\n".join(lines)


def as_json(row: Row) -> dict[str, object]:
    """Return a row as plain values, each figure with its percent."""
    percents = {name: {"off_percent": off.percent} for name, off in row.figures.items()}
    plain = asdict(row)
    plain["figures"] = {name: plain["figures"][name] | percents[name] for name in percents}
    return plain


def main() -> None:
    """Read the options, compare all cases, print."""
    parser = ArgumentParser(description="How far predictions are off from a simulation.")
    parser.add_argument("--roots", type=int, default=400_000, help="roots simulated per case")
    parser.add_argument("--seed", type=int, default=1, help="of the random numbers")
    parser.add_argument("--json", action="store_true", help="print JSON, in seconds")
    options = parser.parse_args()
    if options.roots < LEAST_ROOTS:
        parser.error(f"--roots: fewer than {LEAST_ROOTS} say nothing of the last percent")
    compared = list(cases())
    with ProcessPoolExecutor() as pool:
        count = len(compared)
        found = pool.map(compare, compared, [options.roots] * count, [options.seed] * count)
        rows = [row for case_rows in found for row in case_rows]
    if options.json:
        print(json.dumps([as_json(row) for row in rows], indent=2))
    else:
        print(table(rows))


if __name__ == "__main__":
    main()

"""The plots of an explanation and of a simulation."""

from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sojourn.decide.assign import assign
from sojourn.decide.explain import Explanation
from sojourn.decide.gains import least_allocation
from sojourn.decide.target import Target, reached_s
from sojourn.errors import HotKey, UnstableStation
from sojourn.model.network import PERCENTILES, predict
from sojourn.report.plot.panels import figure, save
from sojourn.topology import Topology

if TYPE_CHECKING:  # importing the simulator takes a second
    from sojourn.simulate.run import Simulated

# Beyond this many operators a curve takes seconds, and bars are too thin to read.
_MOST_OPERATORS = 60
_MOST_STEPS = 25
_WIRE, _WAIT, _SERVICE, _HERE, _TARGET = "#9aa5b1", "#e07a5f", "#3d5a80", "#1d3557", "#c1121f"


def draw_explanation(
    topology: Topology, explanation: Explanation, target: Target | None, path: Path
) -> None:
    picture = figure(13, 4.2)
    buys, goes, around = picture.subplots(1, 3)
    _draw_curve(buys, topology, explanation, target)
    _draw_operators(goes, explanation)
    _draw_neighbours(around, explanation)
    prediction = explanation.prediction
    picture.suptitle(
        f"{prediction.name}: {prediction.processors} processors, {prediction.model}"
    )
    save(picture, path)


def draw_simulated(topology: Topology, simulated: "Simulated", path: Path) -> None:
    """Write the distribution of completion, simulated and predicted, to *path*."""
    picture = figure(7, 4.2)
    axes = picture.subplots()
    ratios = [part / 200 for part in range(1, 200)] + [0.999]
    times_s = [simulated.completions.percentile_s(ratio) for ratio in ratios]
    axes.plot(times_s, ratios, color=_HERE, label="simulated")
    try:
        said = predict(topology, simulated.allocation)
    except (UnstableStation, HotKey):
        said = None
    if said is not None:
        marks = [(said.percentiles_s[name], ratio) for name, ratio in PERCENTILES.items()]
        axes.plot(*zip(*marks, strict=True), "o", color=_WAIT, label=f"{said.model} predicts")
    axes.set(
        title=f"{simulated.name}: completion of {simulated.completions.number} roots",
        xlabel="seconds",
        ylabel="fraction of roots",
    )
    axes.legend(frameon=False)
    save(picture, path)


def _draw_curve(
    axes: Any,  # noqa: ANN401 - matplotlib has no types
    topology: Topology,
    explanation: Explanation,
    target: Target | None,
) -> None:
    """Plot the latency over the number of processors, each assigned where it gains most."""
    prediction = explanation.prediction
    statistic = target or Target("p95", 1.0)
    least = sum(least_allocation(topology).values())
    most = max(prediction.processors + 3, least + 6, round(1.3 * prediction.processors))
    step = max(1, (most - least) // _MOST_STEPS)
    totals = list(range(least, most + 1, step))
    plans = [assign(topology, total, model=prediction.model) for total in totals]
    axes.plot(totals, [plan.mean_s for plan in plans], color=_HERE, label="mean")
    if statistic.statistic != "mean" and len(topology.operators) <= _MOST_OPERATORS:
        tail = [predict(topology, p.allocation, model=prediction.model) for p in plans]
        along = [reached_s(predicted, statistic) for predicted in tail]
        axes.plot(totals, along, color=_WAIT, label=statistic.statistic)
        axes.plot([prediction.processors], [reached_s(prediction, statistic)], "o", color=_WAIT)
    axes.plot([prediction.processors], [prediction.mean_s], "o", color=_HERE)
    axes.axhline(explanation.floor_s, color=_WIRE, ls=":", label="floor of the mean")
    if target is not None:
        axes.axhline(target.seconds, color=_TARGET, ls="--", label=str(target))
    axes.set(title="latency over processors", xlabel="processors", ylabel="seconds")
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False)


def _draw_operators(axes: Any, explanation: Explanation) -> None:  # noqa: ANN401
    """Plot each operator's share of the mean: transfer, wait, service."""
    operators = explanation.prediction.operators
    names = list(operators)
    if len(names) > _MOST_OPERATORS:
        names = sorted(names, key=lambda n: -explanation.operators[n].share_ratio)
        names = names[:_MOST_OPERATORS]
    below = [0.0] * len(names)
    parts = (("wire", "transfer_s", _WIRE), ("service", "service_s", _SERVICE))
    for label, field, colour in (*parts, ("waiting", "wait_s", _WAIT)):
        heights = [operators[n].visits * getattr(operators[n], field) for n in names]
        axes.bar(names, heights, bottom=below, color=colour, label=label)
        below = [low + height for low, height in zip(below, heights, strict=True)]
    for position, name in enumerate(names):
        text = f"k={operators[name].processors}\n{operators[name].utilisation:.0%}"
        axes.text(position, below[position], text, ha="center", va="bottom", fontsize=8)
    axes.margins(y=0.15)
    axes.tick_params(axis="x", rotation=30 if len(names) > 4 else 0)
    axes.set(title="where a root's time goes", ylabel="seconds of the mean")
    axes.legend(frameon=False)


def _draw_neighbours(axes: Any, explanation: Explanation) -> None:  # noqa: ANN401
    """Plot mean and spread of this allocation, and of those with one processor moved."""
    here = explanation.prediction
    rows = [(dict(here.allocation), here.mean_s, here.std_s)]
    rows += [(dict(n.allocation), n.mean_s, n.std_s) for n in explanation.neighbours]
    rows = [row for row in rows if row[1] < inf]
    names = [_short(allocation) for allocation, _, _ in rows]
    colours = [_HERE] + [_WIRE] * (len(rows) - 1)
    means, stds = [row[1] for row in rows], [row[2] for row in rows]
    axes.bar(range(len(rows)), means, yerr=stds, color=colours, capsize=3)
    axes.set_xticks(range(len(rows)), names, rotation=30)
    axes.set(title="with one processor moved: mean ± std of completion", ylabel="seconds")


def _short(allocation: dict[str, int]) -> str:
    counts = [str(k) for k in allocation.values()]
    return ":".join(counts) if len(counts) <= 6 else ":".join([*counts[:5], "…"])

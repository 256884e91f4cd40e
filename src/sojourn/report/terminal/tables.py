"""Plans, predictions, explanations and simulations on the terminal."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from math import copysign, inf
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from sojourn.app.parts import Part
from sojourn.decide.explain import Explanation, KeyExplanation
from sojourn.decide.solution import Solution
from sojourn.decide.target import Target, reached_s
from sojourn.errors import HotKey, UnstableStation
from sojourn.model.network import OperatorFigures, Prediction, predict
from sojourn.report.terminal.console import say, table
from sojourn.report.text import duration
from sojourn.text import escaped
from sojourn.topology import Topology

if TYPE_CHECKING:  # importing the simulator takes a second
    from sojourn.simulate.run import Simulated


def show_prediction(prediction: Prediction) -> None:
    title = f"{prediction.name} · {prediction.model}"
    _show_operators(title, prediction.operators, prediction.mean_s)
    percentiles = "  ".join(f"{p} {duration(s)}" for p, s in prediction.percentiles_s.items())
    say(f"{prediction.processors} processors, mean {duration(prediction.mean_s)}")
    say(
        f"completion  mean {duration(prediction.completion_mean_s)}  "
        f"std {duration(prediction.std_s)}\n            {percentiles}"
    )
    if prediction.computing is not None:
        say(f"cores       {prediction.computing}")
    if prediction.calibration is not None:
        note = ", outside the range it was fitted to" if prediction.extrapolated else ""
        say(f"calibrated{note}")


def show_simulated(topology: Topology, simulated: "Simulated") -> None:
    """Print the simulated latency of an allocation, next to the predicted one."""
    title = f"{simulated.name} · simulated, seed {simulated.seed}"
    _show_operators(title, simulated.operators, simulated.mean_s.value)
    try:
        # the simulator gives every processor its own core, so predict the same
        alone = replace(topology, cores=None)
        predicted_s = _latencies(predict(alone, simulated.allocation))
    except (UnstableStation, HotKey):
        predicted_s = {}
    rows = [
        (
            name,
            duration(value.value),
            f"± {duration(value.half_width)}" if value.half_width < inf else "",
            duration(predicted_s[name]) if predicted_s else "cannot keep up",
            f"{predicted_s[name] / value.value - 1:+.1%}"
            if predicted_s and value.value
            else "",
        )
        for name, value in _latencies(simulated).items()
    ]
    heads = ("simulated", "95 %", "gigk predicts", "error")
    _show_table("latency", [""], heads, rows)
    say(
        f"{simulated.roots} roots, {simulated.visits} visits in {simulated.simulated_s:.4g} s "
        f"simulated, {simulated.wall_s:.3g} s real; measured after {simulated.warm_up_s:.4g} s"
    )


def show_plan(plan: Solution, prediction: Prediction, target: Target | None) -> None:
    show_prediction(prediction)
    if target is not None:
        say(f"target      {target}: {duration(reached_s(prediction, target))}")
    if plan.nodes is not None:
        say(f"nodes       {plan.nodes}")
    say(f"why         {plan.reason}")


def show_explanation(
    explanation: Explanation, parts: Iterable[Part], plans: Mapping[str, str]
) -> None:
    """Print why each operator has its number of processors, and the alternatives."""
    show_prediction(explanation.prediction)
    changes = (
        (
            name,
            _change(-operator.next_gain_s),
            _or_not(operator.last_gain_s, _change(operator.last_gain_s)),
            operator.binds,
        )
        for name, operator in explanation.operators.items()
    )
    heads = ("with one more", "with one fewer", "determined by")
    say()
    _show_table("how the mean would change", ["operator"], heads, changes)
    if explanation.neighbours:
        _show_neighbours(explanation)
    room, floor = explanation.headroom, duration(explanation.floor_s)
    say(f"headroom    arrivals can grow by a factor of {room.factor:.4g}, then {room.binds}")
    say(f"floor       {floor}: the lowest mean with any number of processors")
    for name, operator in explanation.operators.items():
        if operator.key is not None:
            say(f"key         {_key(name, operator.key)}")
    for part in parts:
        read, written = ", ".join(part.reads), ", ".join(part.writes) or "nothing"
        within = f" (with {', '.join(part.projections)})" if part.projections else ""
        named = f"{', '.join(part.operators)}{within}"
        say(f"part        {named}: reads {read}, writes {written}")
    for query, plan in plans.items():
        say(f"\nquery {query}\n{plan}")


def _key(operator: str, key: KeyExplanation) -> str:
    who = f"the key {key.name}" if key.name else "one key"
    return escaped(
        f"{operator}: {who} has {key.part:.3g} of the records and keeps {key.busy:.1%} of one "
        f"processor busy; at most {key.most_per_s:.4g} per s with any number of processors"
    )


def _latencies(of: "Prediction | Simulated") -> dict[str, Any]:
    """Return the latencies by name: seconds, or confidence intervals of a simulation."""
    whole = {"mean": of.mean_s, "completion": of.completion_mean_s, "std": of.std_s}
    return {**whole, **of.percentiles_s}


def _show_operators(
    title: str, operators: Mapping[str, OperatorFigures], mean_s: float
) -> None:
    rows = [
        (
            name,
            str(operator.processors),
            f"{operator.arrivals_per_s:.4g}",
            f"{operator.visits:.4g}",
            f"{operator.utilisation:.1%}",
            duration(operator.wait_s),
            duration(operator.sojourn_s),
            f"{operator.visits * operator.sojourn_s / mean_s if mean_s > 0 else 0:.1%}",
        )
        for name, operator in operators.items()
    ]
    heads = ("processors", "per s", "visits", "busy", "wait", "sojourn", "share")
    _show_table(title, ["operator"], heads, rows)


def _show_neighbours(explanation: Explanation) -> None:
    here_s = explanation.prediction.mean_s
    rows = []
    for neighbour in explanation.neighbours:
        ratio = neighbour.mean_s / here_s if here_s > 0 else 1.0
        row = (
            neighbour.giver,
            neighbour.taker,
            ":".join(str(k) for k in neighbour.allocation.values()),
            duration(neighbour.mean_s),
            duration(neighbour.std_s),
            _or_not(ratio, f"{ratio - 1:+.1%}"),
        )
        rows.append(row)
    heads = ("allocation", "mean", "std", "difference")
    _show_table("with one processor moved", ["from", "to"], heads, rows)


def _show_table(
    title: str, left: Collection[str], right: Collection[str], rows: Iterable[tuple[str, ...]]
) -> None:
    console, made = Console(), table(*left, *right, right=right)
    for row in rows:
        made.add_row(*map(Text, row))  # names are not markup
    console.print(title, style="bold", highlight=False, markup=False)
    console.print(made)
    say()


def _change(seconds: float) -> str:
    # copysign, because a gain of 0 is printed as -0 s
    sign = "+" if copysign(1.0, seconds) > 0 else "-"
    return f"{sign}{duration(abs(seconds))}"


def _or_not(value: float, text: str) -> str:
    return "cannot keep up" if value == inf else text

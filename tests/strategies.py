"""Loads and topologies drawn at random, for every test that wants any of them."""

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from sojourn.topology import Arrival, Operator, Topology
from sojourn.topology.load import StationLoad
from sojourn.topology.traffic import rates

__all__ = ["loads", "topologies"]

_NAMES = "abcdefghijklmnopqrstuvwxyz"
_MOST_GAIN = 0.9
_MOST_BUSY = 0.95

_scvs = st.just(0.0) | st.just(1.0) | st.floats(1e-3, 4)
_rates_per_s = st.floats(0.1, 1000)
_seconds = st.just(0.0) | st.floats(1e-4, 10)
_gains = st.just(1.0) | st.sampled_from([0.0, 0.5, 2.0]) | st.floats(0.05, 3)


@st.composite
def _loads(draw, *, max_erlangs=40.0):
    service_s = draw(_seconds)
    erlangs = draw(st.integers(0, int(max_erlangs)) | st.floats(1e-3, max_erlangs))
    return StationLoad(
        arrivals_per_s=erlangs / service_s if service_s else draw(_rates_per_s),
        service_s=service_s,
        arrival_scv=draw(_scvs),
        service_scv=draw(_scvs),
    )


loads = _loads()
"""What a station may have to carry: nothing, whole and broken Erlangs, no time at all."""


@st.composite
def topologies(draw, max_operators=5, *, loops=True, max_erlangs=6.0, keys=False):
    """Draw a sound topology: splits, joins, fan-outs, operators that nothing reaches.

    With *loops*, streams may also lead back, or to where they come from, with a gain of
    0.9 at most. No operator keeps more than *max_erlangs* processors busy, and none has a
    `max_processors` below what keeping up takes. With *keys* some have a hottest one, which is
    not too much for one processor.
    """
    names = _NAMES[: draw(st.integers(1, max_operators))]
    arrivals = [draw(_arrivals(f"in{i}", names)) for i in range(draw(st.integers(1, 3)))]
    if not any(arrival.per_s for arrival in arrivals):
        arrivals.append(Arrival(name="sure", per_s=draw(_rates_per_s), into=names[0]))
    routes = {name: draw(st.sampled_from(["each", "one_of"])) for name in names}
    back = loops and draw(st.booleans())
    emits = {
        name: draw(_emits(names if back else names[i + 1 :], routes[name]))
        for i, name in enumerate(names)
    }
    emits = _calmed(emits)
    reaching = rates(_entries(arrivals), emits)
    operators = [
        draw(_operators(name, reaching[name], max_erlangs, emits[name], routes[name]))
        for name in names
    ]
    if keys:
        operators = [draw(_keyed(o, reaching[o.name] * o.service_s)) for o in operators]
    return Topology(name="drawn", arrivals=tuple(arrivals), operators=tuple(operators))


@st.composite
def _arrivals(draw, name, operators):
    weights = draw(st.dictionaries(st.sampled_from(operators), st.integers(0, 9), max_size=3))
    total = sum(weights.values())
    shares = {target: weight / total for target, weight in weights.items() if total}
    return Arrival(
        name=name,
        per_s=draw(_rates_per_s | st.just(0.0)),
        into=shares or draw(st.sampled_from(operators)),
        scv=draw(_scvs),
    )


@st.composite
def _emits(draw, targets, route):
    if not targets:
        return {}
    sent = draw(st.dictionaries(st.sampled_from(targets), _gains, max_size=3))
    total = sum(sent.values())
    if route == "one_of" and total > 1:
        return {target: mean / total for target, mean in sent.items()}
    return sent


@st.composite
def _operators(draw, name, arrivals_per_s, max_erlangs, emits, route):
    service_s = draw(_seconds)
    if arrivals_per_s * service_s > max_erlangs:
        service_s = draw(st.floats(0.01, 1)) * max_erlangs / arrivals_per_s
    least = draw(st.just(1) | st.integers(1, 4))
    needed = int(arrivals_per_s * service_s * 1.001) + 1
    return Operator(
        name=name,
        service_s=service_s,
        service_scv=draw(_scvs),
        emits=emits,
        route=route,
        arrival_scv=draw(st.none() | _scvs),
        dispatch=draw(st.sampled_from(["shared", "round_robin"])),
        transfer_s=draw(st.just(0.0) | st.floats(1e-6, 1)),
        min_processors=least,
        max_processors=draw(st.none() | st.integers(0, 9).map(max(least, needed).__add__)),
    )


@st.composite
def _keyed(draw, operator, erlangs):
    most = min(1.0, _MOST_BUSY / max(erlangs, 1e-9))
    return replace(operator, hottest_key=draw(st.just(0.0) | st.floats(1e-3, 1)) * most)


def _calmed(emits):
    """Scale the numbers emitted inside loops down until each of them dies out."""
    gains = np.array([[emits[i].get(j, 0.0) for j in emits] for i in emits])
    reach = gains > 0
    for _ in emits:
        reach = reach | (reach @ reach)
    inside = reach & reach.T
    radius = float(max(abs(np.linalg.eigvals(gains * inside))))
    factor = _MOST_GAIN / max(_MOST_GAIN, radius)
    return {
        i: {
            j: mean * factor if inside[row, column] else mean
            for column, j in enumerate(emits)
            if (mean := sent.get(j)) is not None
        }
        for row, (i, sent) in enumerate(emits.items())
    }


def _entries(arrivals):
    entering = {}
    for arrival in arrivals:
        for target, share in arrival.shares.items():
            entering[target] = entering.get(target, 0.0) + arrival.per_s * share
    return entering

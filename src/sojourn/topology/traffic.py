"""Traffic equations: the rate of records at each operator, loops included.

Operators are solved one strongly connected component at a time, in the order records flow.
Without a loop, the rate is the sum of the inflows; a loop is a small linear system,
λ = inflow + Gᵀλ, which has a finite solution exactly when the spectral radius of its gain
matrix G is below 1.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

Gains = Mapping[str, Mapping[str, float]]
"""The mean number of records sent from operator to operator, per record served."""


def components(gains: Gains) -> list[tuple[str, ...]]:
    """Return the strongly connected components, in the order that records reach them.

    Tarjan's algorithm, without recursion, so that a chain may have any length.

    >>> components({"a": {"b": 1}, "b": {"c": 1, "a": 0.5}, "c": {}})
    [('a', 'b'), ('c',)]
    """
    low: dict[str, int] = {}
    path: list[str] = []
    placed: set[str] = set()
    found: list[tuple[str, ...]] = []

    # `low` starts as the order of discovery, and falls to the earliest operator on the path
    # that can be reached. An operator whose `low` does not fall is the first of its component.
    def enter(operator: str) -> tuple[str, int, Iterator[str]]:
        low[operator] = len(low)
        path.append(operator)
        return operator, low[operator], iter(gains[operator])

    for root in gains:
        work = [] if root in low else [enter(root)]
        while work:
            operator, index, targets = work[-1]
            for target in targets:
                if target not in low:
                    work.append(enter(target))
                    break
                if target not in placed:
                    low[operator] = min(low[operator], low[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[operator])
                if low[operator] == index:
                    start = path.index(operator)
                    found.append(tuple(path[start:]))
                    placed.update(path[start:])
                    del path[start:]
    return found[::-1]  # Tarjan finds the last component first


def is_loop(component: Sequence[str], gains: Gains) -> bool:
    """Return whether records can return to an operator within *component*."""
    return len(component) > 1 or component[0] in gains[component[0]]


def dies_out(component: Sequence[str], gains: Gains, *, critical: float = 1.0) -> bool:
    """Return whether the gain of a loop, as computed by `loop_gain`, is below *critical*.

    Computing the gain is slow for loops of hundreds of operators. The spectral radius of G is
    below 1 exactly when I - G has only positive pivots (an M-matrix).

    >>> dies_out(("a", "b"), {"a": {"b": 2}, "b": {"a": 0.5}})
    False
    """
    gain = _matrix(component, gains) / critical
    with np.errstate(all="ignore"):  # huge gains overflow, and do not die out
        for k in reversed(range(len(gain))):
            if not gain[k, k] < 1:
                return False
            gain[:k, :k] += np.outer(gain[:k, k], gain[k, :k] / (1 - gain[k, k]))
    return True


def loop_gain(component: Sequence[str], gains: Gains) -> float:
    """Return the spectral radius of the gain matrix within *component*.

    >>> loop_gain(("a", "b"), {"a": {"b": 2}, "b": {"a": 0.32}})
    0.8
    """
    with np.errstate(all="ignore"):  # as in `dies_out`
        return float(np.max(abs(np.linalg.eigvals(_matrix(component, gains)))))


def rates(external: Mapping[str, float], gains: Gains) -> dict[str, float]:
    """Return the records per second that reach each operator, from outside and from others.

    Loop gains must be below 1.

    >>> rates({"a": 10.0}, {"a": {"b": 1}, "b": {"a": 0.5}})
    {'a': 20.0, 'b': 20.0}
    """
    inflow = {operator: external.get(operator, 0.0) for operator in gains}
    for component in components(gains):
        if is_loop(component, gains):
            own = np.array([inflow[operator] for operator in component])
            looped = _looped_rates(own, _matrix(component, gains))
            inflow.update(zip(component, looped.tolist(), strict=True))
        inside = set(component)
        for operator in component:
            for target, gain in gains[operator].items():
                if target not in inside:
                    inflow[target] += inflow[operator] * gain
    return inflow


def _looped_rates(
    inflow: NDArray[np.float64], gain: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Solve λ = inflow + Gᵀλ by eliminating one operator of the loop after the other.

    Records through an eliminated operator are redirected to its targets. Rates are only added,
    never subtracted, so unlike a general solver this stays exact for gains of 1e9 and 1e-9.
    """
    rates, gain = inflow.copy(), gain.copy()
    with np.errstate(all="ignore"):  # as in `dies_out`
        # forward elimination, then back substitution
        for k in reversed(range(len(rates))):
            passed = gain[k, :k] / max(1 - gain[k, k], 0.0)
            rates[:k] += rates[k] * passed
            gain[:k, :k] += np.outer(gain[:k, k], passed)
        for k in range(len(rates)):
            rates[k] = (rates[k] + rates[:k] @ gain[:k, k]) / max(1 - gain[k, k], 0.0)
    return rates


def _matrix(component: Sequence[str], gains: Gains) -> NDArray[np.float64]:
    rows = [[gains[i].get(j, 0.0) for j in component] for i in component]
    return np.array(rows, dtype=np.float64)  # large integers would become objects

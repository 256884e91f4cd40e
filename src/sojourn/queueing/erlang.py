"""Erlang's formulas without factorials, so that no number of processors overflows."""

from collections.abc import Iterator
from math import inf

# Terms below this part of the sum are negligible.
_NEGLIGIBLE = 1e-18


def blocking(erlangs: float, processors: int) -> float:
    """Return Erlang B, the probability that all processors are busy if records cannot wait.

    Its inverse is a sum of positive terms, 1 + k/a + k(k-1)/a² + …, which become negligible
    after a multiple of √a terms: a hundred thousand Erlangs take about three thousand steps,
    far fewer than processors, without loss of precision.

    >>> blocking(2.0, 3)
    0.2105
    """
    if erlangs == 0:
        return 0.0 if processors else 1.0
    term = inverse = 1.0
    for left in range(processors, 0, -1):
        term *= left / erlangs
        inverse += term
        if term < inverse * _NEGLIGIBLE:
            break
        if inverse == inf:
            return 0.0
    return 1 / inverse


def delay_probability(erlangs: float, processors: int) -> float:
    """Return Erlang C, the probability that a record must wait.

    *processors* must be more than *erlangs*.

    >>> delay_probability(2.0, 3)
    0.4444
    """
    blocked = blocking(erlangs, processors)
    return processors * blocked / (processors - erlangs * (1 - blocked))


def waits_s(erlangs: float, service_s: float, first: int) -> Iterator[float]:
    """Yield the mean wait in M/M/k for k = *first*, one more, and so on without end.

    Each value takes one step of the Erlang B recursion, for plans that add processors one by
    one. *first* must be more than *erlangs*.

    >>> waits = waits_s(2.0, 1.0, first=3)
    >>> next(waits), next(waits)
    (0.4444, 0.0870)
    """
    processors, blocked = float(first), blocking(erlangs, first)
    while True:
        spare, lost = processors - erlangs, erlangs * blocked
        yield service_s * processors * blocked / (spare * (spare + lost))
        processors += 1.0
        blocked = lost / (processors + lost)

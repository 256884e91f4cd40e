"""Applications of synthetic operators, by the shape of their topology."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import count
from random import Random, random
from typing import TYPE_CHECKING

import sojourn as sj
from sojourn.errors import BadInput

if TYPE_CHECKING:
    from sojourn.app.application import Readable

SHAPES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "linear": {"op1": ("records",), "op2": ("op1",), "op3": ("op2",), "op4": ("op3",)},
    "diamond": {"op1": ("records",), "op2": ("op1",), "op3": ("op1",), "op4": ("op2", "op3")},
    "star": {
        "op1": ("left",),
        "op2": ("right",),
        "op3": ("op1", "op2"),
        "op4": ("op3",),
        "op5": ("op3",),
    },
}
"""What each operator reads: operators, or sources."""

_SCHEMA = "number bigint, payload string"
_PAYLOAD = 140
_DRAWS = 100
# measured: a record costs this much besides its random numbers
_RECORD_S, _DRAW_S = 1e-6, 4e-8


@dataclass(frozen=True, slots=True)
class Synthetic:
    """What a synthetic operator does: it draws 100 *c_s* random numbers, and yields *s_s*."""

    c_s: int
    s_s: Fraction

    def numbers(self, number: int) -> range:
        """Return the numbers of the records that follow from record *number*.

        The records of a stream stay numbered without gaps, so a fraction is kept to exactly:

        >>> three_halves = Synthetic(10, Fraction(3, 2))
        >>> [list(three_halves.numbers(number)) for number in range(4)]
        [[0], [1, 2], [3], [4, 5]]
        """
        up, down = self.s_s.numerator, self.s_s.denominator
        return range(number * up // down, (number + 1) * up // down)


def synthetic(
    work: Synthetic, _stream: str, record: tuple[int, str]
) -> Iterator[tuple[int, str]]:
    """Draw random numbers, which nobody needs, and yield the record as often as wanted."""
    for _ in range(_DRAWS * work.c_s):
        random()  # noqa: S311 - it is drawn for the time that it takes
    number, payload = record
    for following in work.numbers(number):
        yield following, payload


def topology_app(
    shape: str, *, c_s: int = 10, s_s: float = 1.0, t_s: int | None = None
) -> sj.App:
    """Return an application of synthetic operators.

    *c_s* is the load of each operator: 1 is 100 random numbers per record. *s_s* is its
    selectivity, the records that it yields per record; operators at the end yield one, the
    result. *t_s* is the number of its processors, which None leaves to the loop.

    >>> topology_app("diamond", s_s=2).topology({"records": 10}).rates
    {'op1': 10.0, 'op2': 20.0, 'op3': 20.0, 'op4': 80.0}
    """
    if shape not in SHAPES:
        raise BadInput(f"there is no shape {shape!r}; write one of {', '.join(SHAPES)}")
    if c_s < 0 or s_s <= 0:
        raise BadInput(f"c_s={c_s}, s_s={s_s}: write a c_s of 0 or more, an s_s above 0")
    graph = SHAPES[shape]
    app = sj.App(f"micro-{shape}")
    streams: dict[str, Readable] = {}
    for name, inputs in graph.items():
        for source in inputs:
            if source not in graph:
                streams[source] = app.source(source, schema=_SCHEMA, samples=samples)
        inner = any(name in others for others in graph.values())
        selectivity = Fraction(str(s_s)) if inner else Fraction(1)
        operator = app.operator(
            reads=[streams[stream] for stream in inputs],
            emits=_SCHEMA,
            name=name,
            service_s=_RECORD_S + _DRAW_S * _DRAWS * c_s,
            service_scv=0.1,
            sends=float(selectivity),
            min_processors=t_s or 1,
            max_processors=t_s,
        )(partial(synthetic, Synthetic(c_s, selectivity)))
        streams[name] = operator
        if not inner:
            app.sink(operator)
    return app


def samples(seed: int) -> Iterator[tuple[int, str]]:
    """Yield numbered records with a payload as long as a tweet."""
    drawn = Random(seed)  # noqa: S311 - not for secrets
    payloads = [drawn.randbytes(_PAYLOAD // 2).hex() for _ in range(100)]
    for number in count():
        yield number, payloads[number % len(payloads)]

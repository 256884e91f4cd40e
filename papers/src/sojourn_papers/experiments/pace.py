"""The pace of an experiment on an engine in real time, and its caveats."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, floor, inf, log10

from sojourn.errors import BadInput
from sojourn_papers.experiments import experiment
from sojourn_papers.experiments.published_drs import EVERY_S
from sojourn_papers.experiments.span import Span, reallocating

LEAST_LOOK_S = 0.5
"""The least time between two looks: brokers are queried five times a second."""

WITHIN_S = 300.0
"""The default duration of an experiment."""

# Three operators in a chain easily serve 80 records/s each on two cores.
_RECORDS_PER_S = 240.0
# The time to start an application, and to stop it; and machines before it.
_START_S, _POOL_START_S = 18.0, 70.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Leg:
    """A span at its pace: *faster*, and with minutes that last *minute_s* of its own time."""

    span: Span
    faster: float
    minute_s: float

    @property
    def look_s(self) -> float:
        """How long a minute is for us."""
        return self.minute_s / self.faster

    @property
    def wall_s(self) -> float:
        """How long all runs of one day take."""
        return _starts_s(self.span) + self.span.runs * self.span.schedule.minutes * self.look_s

    @property
    def said(self) -> str:
        """How fast it is, and on which machines, in words."""
        slow = self.faster < 1
        times = _rounded(1 / self.faster if slow else self.faster)
        said = (
            f"{times:g} times as {'slow' if slow else 'fast'}" if times != 1 else "in real time"
        )
        pace = f"{self.span.application.name} {said}"
        pool = self.span.pool
        return pace if pool is None else f"{pace} on a trial cluster of up to {pool.most} nodes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """All spans of an experiment, each at a pace that the machine can sustain."""

    legs: tuple[Leg, ...]

    @classmethod
    def of(
        cls, spans: Sequence[Span], *, faster: float | None = None, within_s: float = WITHIN_S
    ) -> "Pace":
        """Return the pace at which *spans* take at most *within_s* in total.

        It is as fast as requested, or as a small machine can sustain; minutes are shortened to
        fit. Raise `BadInput` if there is too little time between two looks.
        """
        runs = sum(span.runs for span in spans)
        minutes = sum(span.runs * span.schedule.minutes for span in spans)
        starts_s = sum(map(_starts_s, spans))
        look_s = (within_s - starts_s) / minutes
        if not look_s >= LEAST_LOOK_S:
            least = ceil((starts_s + LEAST_LOOK_S * minutes) / 60)
            raise BadInput(
                f"{runs} starts and {minutes} looks do not fit into {within_s:g} s; "
                f"write --within {least}m or more"
            )
        return cls(legs=tuple(_leg(span, faster, look_s) for span in spans))

    @classmethod
    def chosen(
        cls, names: Sequence[str] | None, *, faster: float | None, within_s: float | None
    ) -> "dict[str, Pace]":
        """Return the pace of each of these experiments; None are all that can be run.

        Raise `BadInput` if one cannot be run in real time, or not at that pace.
        """
        if faster is not None and not 0 < faster < inf:
            raise BadInput(f"--faster {faster:g} is not positive; write more than 0")
        possible = reallocating()
        for name in names or ():
            experiment(name)
            if name not in possible:
                raise BadInput(
                    f"{name} is not about re-allocation and runs on the simulator only; "
                    f"on Spark there are {', '.join(possible)}"
                )
        within_s = WITHIN_S if within_s is None else within_s
        return {
            name: cls.of(possible[name].spans, faster=faster, within_s=within_s)
            for name in names or possible
        }

    @property
    def faster(self) -> dict[str, float]:
        """How many times as fast time passes, by topology."""
        return {leg.span.application.topology.name: leg.faster for leg in self.legs}

    @property
    def minutes_s(self) -> dict[str, float]:
        """How long a minute of the papers is, by topology."""
        return {leg.span.application.topology.name: leg.minute_s for leg in self.legs}

    @property
    def looks(self) -> int:
        """How many looks there are in all runs of one day."""
        return sum(leg.span.runs * leg.span.schedule.minutes for leg in self.legs)

    @property
    def wall_s(self) -> float:
        """How long all of it takes, on one day."""
        return sum(leg.wall_s for leg in self.legs)

    @property
    def said(self) -> str:
        """How fast it is, in words."""
        return ", ".join(leg.said for leg in self.legs)

    @property
    def caveat(self) -> str:
        """What is not as it would be on a cluster with Storm, and for as long as there."""
        return " ".join(dict.fromkeys(line for leg in self.legs for line in _differences(leg)))


def _leg(span: Span, faster: float | None, look_s: float) -> Leg:
    pace = faster or _rounded(_RECORDS_PER_S / span.records_per_s)
    leg = Leg(span=span, faster=pace, minute_s=min(EVERY_S, _rounded(pace * look_s)))
    if leg.look_s < 0.9 * LEAST_LOOK_S:
        raise BadInput(
            f"{leg.said}, a minute lasts {leg.look_s:.2g} s, but a look takes "
            f"{LEAST_LOOK_S:g} s; write --faster {EVERY_S / LEAST_LOOK_S:g} or less"
        )
    return leg


def _starts_s(span: Span) -> float:
    """Return how long all runs of one day take to start."""
    return span.runs * (_START_S if span.pool is None else _POOL_START_S)


def _differences(leg: Leg) -> Iterator[str]:
    span, application = leg.span, leg.span.application
    roots = application.topology.arrivals_per_s * leg.minute_s
    yield (
        f"On Spark, {leg.said}: a minute of the paper lasts {leg.minute_s:.2g} s of its own "
        f"time, with about {roots:.0f} roots, and {leg.look_s:.2g} s of real time."
    )
    if span.days > 1:
        yield f"It runs for one day instead of {span.days}."
    if span.pool is not None:
        yield (
            "Machines are processes: a worker of Spark, started when one is added, and an "
            "executor. They share the cores of this machine, and their start takes its real "
            f"time: {leg.look_s:.2g} s are a minute."
        )
    pauses = span.schedule.pauses
    if pauses.adding_s or pauses.otherwise_s:
        stands = " or ".join(f"{s:g}" for s in sorted({pauses.adding_s, pauses.otherwise_s}))
        yield (
            f"Changes do not pause operators for {stands} s, as they do in Storm: claims about "
            "pauses cannot be tested, or hold trivially."
        )
    if application.dealt:
        yield (
            f"{' and '.join(application.dealt)} have one queue for all processors, instead of "
            "one for each, which would be slower."
        )
    if any(gaps.shape == "uniform" for gaps in application.gaps.values()):
        yield "Gaps between roots vary as much as uniform ones, but are gamma distributed."
    wire = f", instead of {1e3 * application.wire_s:g} ms" if application.wire_s else ""
    yield (
        f"The transfer to an operator takes 3 to 10 ms, which count as "
        f"{_rounded(3 * leg.faster):g} to {_rounded(10 * leg.faster):g} ms "
        f"of {application.name}{wire}."
    )


def _rounded(number: float) -> float:
    """Return *number* with two digits, rounded down."""
    unit = 10.0 ** (floor(log10(number)) - 1)
    return round(floor(number / unit * (1 + 1e-12)) * unit, 12)

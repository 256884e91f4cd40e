"""The load that a producer offers to topics: rates over time, samples, a report."""

from collections.abc import Iterator, Mapping
from itertools import islice, pairwise, repeat
from math import inf, isfinite, sqrt
from random import Random
from typing import Any, Literal, cast

import msgspec

from sojourn.app.application import App
from sojourn.app.codec import codec_of
from sojourn.app.loading import is_address, load
from sojourn.errors import BadApplication, BadWorkload, SojournError
from sojourn.spark.driver.kafka.topics import check_topic
from sojourn.spark.wire.headers import BLOB

Gaps = Literal["poisson", "constant", "uniform"] | float
"""Distribution of the gaps between arrivals; `uniform` is 0 to 2 times the mean.

A number is their squared coefficient of variation (scv), of a gamma distribution.
"""


Message = tuple[bytes, dict[str, str | bytes | None]]
"""The value and the headers of a message."""


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """The records for one topic, and their rate over time."""

    topic: str
    points: tuple[tuple[float, float], ...]
    """Times and rates, interpolated linearly; two at the same time make a step.

    The last rate holds until the end.
    """
    gaps: Gaps = "poisson"
    at_once: int = 1
    """Records in a burst; there is no gap inside it."""
    records: str = ""
    """Address of samples, `package.module:app source`; if empty, records are numbers."""
    size_bytes: int | None = None
    """Size to which the numbers are padded."""
    most: int | None = None
    """Maximum number of records."""

    def __post_init__(self) -> None:
        check_topic(self.topic, 1)
        if not self.points or self.points[0][0] != 0:
            raise BadWorkload(f"{self.topic}: no rate at 0 s; begin with a point at 0 s")
        for at_s, per_s in self.points:
            if not (isfinite(at_s) and isfinite(per_s) and per_s >= 0):
                raise BadWorkload(
                    f"{self.topic}: the rate at {at_s} s is {per_s} per second; write 0 or more"
                )
        times = [at_s for at_s, _ in self.points]
        if times != sorted(times):
            raise BadWorkload(f"{self.topic}: the points are not in order of time; sort them")
        if not isinstance(self.gaps, str) and not 0 <= self.gaps < inf:
            raise BadWorkload(f"{self.topic}: the scv of gaps is {self.gaps}; write 0 or more")
        if self.at_once < 1:
            raise BadWorkload(f"{self.topic}: {self.at_once} records at once; write 1 or more")


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """A load on topics of the brokers *servers*."""

    servers: str
    sources: tuple[Source, ...]
    lasts_s: float | None = None
    """Duration; without it the load runs until it is stopped."""
    seed: int = 1
    """Seed of arrival times and samples."""
    kafka: dict[str, str] = {}
    """Client settings, which override Sojourn's own."""

    def __post_init__(self) -> None:
        topics = [source.topic for source in self.sources]
        if not topics or len(set(topics)) < len(topics):
            problem = f"the topics are {', '.join(topics)}" if topics else "there are no topics"
            raise BadWorkload(f"{problem}; name each once, and at least one")
        if self.lasts_s is not None and not 0 <= self.lasts_s < inf:
            raise BadWorkload(
                f"lasts_s is {self.lasts_s}; write 0 or more seconds, or leave it out"
            )

    def arrivals(self, source: Source) -> Iterator[float]:
        """Yield when the records of *source* are due, in seconds since the start."""
        random = Random(f"{self.seed} {source.topic}")  # noqa: S311 - no secret
        end_s = inf if self.lasts_s is None else self.lasts_s
        gaps = drawn_gaps(source.gaps, random, at_once=source.at_once)
        for at_s in islice(arrivals_s(source.points, gaps), source.most):
            if at_s >= end_s:
                return
            yield at_s


class LoadReport(msgspec.Struct, frozen=True, kw_only=True):
    started_s: float
    """Time of the start, in seconds since 1970."""
    lasted_s: float
    sent: dict[str, int]
    """Records that brokers acknowledged, by topic."""
    failed: dict[str, int]
    """Records that brokers did not acknowledge, by topic."""
    late_s: float
    """Maximum delay between the due time of a record and its production."""
    error: str = ""
    """Reason of the first failure."""

    def as_json(self) -> dict[str, Any]:
        return cast("dict[str, Any]", msgspec.to_builtins(self))

    def __str__(self) -> str:
        lines = [
            f"{number} records sent to {topic} in {self.lasted_s:.1f} s"
            + f", {self.failed[topic]} not confirmed: {self.error}" * bool(self.failed[topic])
            for topic, number in self.sent.items()
        ]
        return "\n".join([*lines, f"records were sent up to {1000 * self.late_s:.0f} ms late"])


def load_sources(
    app: App,
    address: str,
    rates: Mapping[str, tuple[tuple[float, float], ...]],
    *,
    gaps: Gaps = "poisson",
    at_once: int = 1,
    most: int | None = None,
) -> tuple[Source, ...]:
    """Return the load on the sources in *rates*, which maps each to points of time and rate.

    Raise `BadApplication` if a source has no samples. The application of a topology file needs
    none.
    """
    stand_in = not is_address(address)
    for name in rates:
        if name not in app.samples and not stand_in:
            raise BadApplication(
                f"sources.{name}",
                "it has no samples",
                f"give app.source samples=, or write to the topic {app.topic(name)} yourself",
            )
    return tuple(
        Source(
            topic=app.topic(name),
            points=points,
            gaps=gaps,
            at_once=at_once,
            records="" if stand_in else f"{address} {name}",
            most=most,
        )
        for name, points in rates.items()
    )


def messages(place: str, seed: int) -> Iterator[Message]:
    """Yield the encoded samples of a source, with the address `package.module:app source`.

    Raise `BadApplication` if the samples function raises, and `BadRecord` if a sample does not
    fit the schema of the source.
    """
    address, _, name = place.rpartition(" ")
    app = load(address)
    encode = codec_of(app.sources[name]).encode
    try:
        for record in app.samples[name](seed):
            payload, blobs = encode(record)
            yield payload, {BLOB + column: value for column, value in blobs.items()}
    except SojournError:
        raise
    except Exception as error:
        problem = f"making samples failed: {type(error).__name__}: {error}"
        raise BadApplication(f"sources.{name}.samples", problem, "correct it") from error


def payload(number: int, size_bytes: int | None = None) -> bytes:
    """Return the JSON of record *number*, padded to *size_bytes* if it is shorter.

    >>> payload(7), payload(7, 24)
    (b'{"seed":7}', b'{"seed":7,"pad":"xxxxx"}')
    """
    if size_bytes is None:
        return b'{"seed":%d}' % number
    bare = b'{"seed":%d,"pad":""}' % number
    return bare[:-2] + b"x" * (size_bytes - len(bare)) + bare[-2:]


def drawn_gaps(gaps: Gaps, random: Random, *, at_once: int = 1) -> Iterator[float]:
    """Yield an infinite stream of gaps with a mean of 1, in bursts of *at_once* arrivals.

    >>> from itertools import islice
    >>> list(islice(drawn_gaps("constant", Random(1), at_once=3), 5))
    [3.0, 0.0, 0.0, 3.0, 0.0]
    """
    while True:
        match gaps:
            case "constant" | 0:
                gap = 1.0
            case "poisson" | 1:
                gap = random.expovariate(1.0)
            case "uniform":
                gap = random.uniform(0.0, 2.0)
            case scv:
                gap = random.gammavariate(1 / scv, scv)
        yield gap * at_once
        yield from repeat(0.0, at_once - 1)


def arrivals_s(
    points: tuple[tuple[float, float], ...], gaps: Iterator[float]
) -> Iterator[float]:
    """Yield arrival times at a varying rate, without end unless the last rate is 0.

    *gaps* have a mean of 1 and are consumed in units of rate times seconds (time rescaling).
    Exponential gaps therefore give exactly a Poisson process with the varying rate.

    >>> from itertools import islice, repeat
    >>> list(islice(arrivals_s(((0.0, 2), (1.0, 2), (1.0, 4)), repeat(1.0)), 5))
    [0.5, 1.0, 1.25, 1.5, 1.75]
    """
    at_s, left = 0.0, next(gaps)
    for (start_s, from_per_s), (end_s, to_per_s) in pairwise(points):
        if end_s == start_s:
            continue
        slope = (to_per_s - from_per_s) / (end_s - start_s)
        while True:
            here = from_per_s + slope * (at_s - start_s)
            passes = (here + to_per_s) / 2 * (end_s - at_s)
            if left > passes or passes <= 0:
                break
            # the area under a straight line from here on: a quadratic, stable for tiny slopes
            root = sqrt(max(0.0, here * here + 2 * slope * left))
            if here + root > 0:  # a gap of wild ones may be 0
                at_s = min(end_s, at_s + 2 * left / (here + root))
            yield at_s
            left = next(gaps)
        left, at_s = left - max(0.0, passes), end_s
    last = points[-1][1]
    while last > 0:
        at_s += left / last
        yield at_s
        left = next(gaps)

"""What is sent to topics from outside: how much when, and what became of it."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import inf, isfinite, sqrt
from random import Random
from typing import Literal

import msgspec

from sojourn.errors import BadWorkload
from sojourn.spark.topics import check_topic
from sojourn.topology.check import shown

__all__ = [
    "Load",
    "LoadReport",
    "Source",
    "arrivals_s",
    "parse_load",
    "parse_report",
    "payload",
]


class Source(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The records for one topic.

    *points* are times and rates: the rate goes in straight lines from one to the next, and
    stays at the last; two at the same time are a step. *gaps* are gamma distributed with an
    scv, `poisson` being 1 and `constant` 0. With *size_bytes* records are padded to that.
    """

    topic: str
    points: tuple[tuple[float, float], ...]
    gaps: Literal["poisson", "constant"] | float = "poisson"
    size_bytes: int | None = None

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
        if not (isfinite(self.gap_scv) and self.gap_scv >= 0):
            raise BadWorkload(
                f"{self.topic}: the scv of gaps is {self.gap_scv}; write 0 or more"
            )

    @property
    def gap_scv(self) -> float:
        """The scv of the gaps between records."""
        if isinstance(self.gaps, str):
            return 1.0 if self.gaps == "poisson" else 0.0
        return self.gaps


class Load(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is sent to topics of the brokers *servers*, for *lasts_s* or until it is stopped.

    The same *seed* gives the same times. *kafka* are settings of the client, over ours.
    """

    servers: str
    sources: tuple[Source, ...]
    lasts_s: float | None = None
    seed: int = 1
    kafka: dict[str, str] = {}

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
        for at_s in arrivals_s(source.points, source.gap_scv, random):
            if at_s >= end_s:
                return
            yield at_s


class LoadReport(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a load: records by topic, and how late the latest was handed over.

    *failed* are those that the broker did not confirm, the first of them for the reason
    *error*. *started_s* is in seconds since 1970.
    """

    started_s: float
    sent: dict[str, int]
    failed: dict[str, int]
    late_s: float
    error: str = ""


def parse_load(text: str | bytes) -> Load:
    """Return the load that *text* is in JSON, or raise a `BadInput` that says what is wrong.

    >>> parse_load('{"servers": "a:9092", "sources": [{"topic": "lines", "points": 7}]}')
    Traceback (most recent call last):
    ...
    sojourn.errors.BadWorkload: ... Expected `array`, got `int` - at `$.sources[0].points`; ...
    """
    try:
        return msgspec.json.decode(text, type=Load)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadWorkload(f"{shown(text)} is not a load: {error}; correct it there") from error


def parse_report(said: Sequence[str]) -> LoadReport | None:
    """Return what was sent, told in one of the lines *said*; libraries may have a word too.

    >>> told = '{"started_s":1,"sent":{"lines":7},"failed":{"lines":0},"late_s":0.01}'
    >>> parse_report(["a warning", told, "{"]).sent
    {'lines': 7}
    """
    for line in reversed(said):
        try:
            return msgspec.json.decode(line, type=LoadReport)
        except msgspec.DecodeError:
            continue
    return None


def payload(number: int, size_bytes: int | None = None) -> bytes:
    """Return the record *number*, padded to *size_bytes* if it is shorter.

    >>> payload(7), payload(7, 24)
    (b'{"seed":7}', b'{"seed":7,"pad":"xxxxx"}')
    """
    if size_bytes is None:
        return b'{"seed":%d}' % number
    bare = b'{"seed":%d,"pad":""}' % number
    return bare[:-2] + b"x" * (size_bytes - len(bare)) + bare[-2:]


def arrivals_s(
    points: tuple[tuple[float, float], ...], scv: float, random: Random
) -> Iterator[float]:
    """Yield the times of arrivals at a rate that changes, for ever or until it stays 0.

    Gaps are drawn with mean 1 and pass as fast as the rate: of a Poisson stream that is
    exactly a Poisson stream with a rate that changes.

    >>> from itertools import islice
    >>> list(islice(arrivals_s(((0.0, 2), (1.0, 2), (1.0, 4)), 0, Random(1)), 5))
    [0.5, 1.0, 1.25, 1.5, 1.75]
    """
    at_s, left = 0.0, _gap(scv, random)
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
            left = _gap(scv, random)
        left, at_s = left - max(0.0, passes), end_s
    last = points[-1][1]
    while last > 0:
        at_s += left / last
        yield at_s
        left = _gap(scv, random)


def _gap(scv: float, random: Random) -> float:
    if scv == 0:
        return 1.0
    return random.expovariate(1.0) if scv == 1 else random.gammavariate(1 / scv, scv)

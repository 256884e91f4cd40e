"""The load of an experiment, sped up, as records that are sent to Kafka."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from time import monotonic, time

from confluent_kafka import TopicPartition
from msgspec.structs import replace

from sojourn.app.application import App
from sojourn.app.waiting_app import entrances
from sojourn.errors import BadWorkload, EngineError
from sojourn.simulate.workload import Gaps, Rates, Workload
from sojourn.spark.driver.kafka.cluster import Cluster
from sojourn.spark.driver.kafka.dead_letters import reader
from sojourn.spark.driver.kafka.offsets import Offsets
from sojourn.spark.driver.load.offered_load import Load, Source
from sojourn.topology import Arrival, Topology
from sojourn_papers.experiments.time_scale import sped_up_rates

LEAD_S = 2.0
"""How long the load is sent at its first rate before the clock starts."""

_PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True)
class Offered:
    """A load, and a consumer that sees when it has begun."""

    load: Load

    @property
    def steady(self) -> Load:
        """The load at its first rates, for ever."""
        first = [
            Source(topic=s.topic, points=s.points[:1], gaps=s.gaps) for s in self.load.sources
        ]
        return replace(self.load, sources=tuple(first), lasts_s=None)

    @property
    def first_s(self) -> float:
        """When its first record comes: the seed decides."""
        first_s = min(next(self.load.arrivals(s), LEAD_S) for s in self.load.sources)
        if first_s >= LEAD_S:
            raise BadWorkload(
                f"no record in the first {LEAD_S:g} s; write a first rate above 0"
            )
        return first_s

    def ends(self) -> Mapping[str, Mapping[int, int]]:
        """Return the offsets that come next."""
        return self._offsets().partitions()

    def age_s(self, after: Mapping[str, Mapping[int, int]]) -> float:
        """Wait for the first record beyond the offsets *after*; return how old it is."""
        behind = [
            TopicPartition(topic, partition, offset)
            for topic, offsets in after.items()
            for partition, offset in offsets.items()
        ]
        until_s = monotonic() + _PATIENCE_S
        with reader(Cluster(self.load.servers, self.load.kafka).for_clients) as topics:
            topics.assign(behind)
            while (left_s := until_s - monotonic()) > 0:
                # the end of a partition is told too, as an error
                first = topics.poll(left_s)
                if first is not None and first.error() is None:
                    return max(0.0, time() - first.timestamp()[1] / 1000)
        raise EngineError(
            f"no record of the load has arrived after {_PATIENCE_S:g} s; try again"
        )

    def _offsets(self) -> Offsets:
        topics = {source.topic: 1 for source in self.load.sources}
        return Offsets(Cluster(self.load.servers, self.load.kafka).client(), topics)


def sources(
    app: App, topology: Topology, workload: Workload, faster: float
) -> Iterator[Source]:
    """Yield what comes to *app*, the stand-in of *topology*, so many times as fast.

    It begins `LEAD_S` before the clock does, at the first rate. Raise `BadWorkload` for what
    cannot be sent, or is not supported by stand-ins.
    """
    for name, service in workload.service.items():
        if service.shape != "auto":
            raise BadWorkload(
                f"{name}: {service.shape} service times are not supported on Spark; "
                "leave the shape out"
            )
    if workload.spread:
        raise BadWorkload("spread is not supported on Spark; leave it out")
    entering = iter(entrances(topology))
    for arrival in topology.arrivals:
        rates = workload.rates.get(arrival.name, Rates(((0.0, arrival.per_s),)))
        for entrance in islice(entering, len(arrival.shares)):
            share = arrival.shares[str(entrance.into)]
            quick = sped_up_rates(rates.times(share), faster)
            scv = _gap_scv(arrival, workload.gaps.get(arrival.name, Gaps()))
            yield Source(
                topic=app.topic(entrance.name),
                points=(
                    (0.0, quick.points[0][1]),
                    *((LEAD_S + at_s, per_s) for at_s, per_s in quick.points),
                ),
                gaps=share * scv + 1 - share,
            )


def _gap_scv(arrival: Arrival, gaps: Gaps) -> float:
    if gaps.shape == "renewal":
        return arrival.scv
    if gaps.shape == "uniform":
        return (gaps.high - gaps.low) ** 2 / 3 / (gaps.high + gaps.low) ** 2
    raise BadWorkload(
        f"{arrival.name}: {gaps.shape} cannot be sent to Spark; write renewal or uniform"
    )

"""The load that a stand-in is sent, from a trace."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass

from sojourn.app.application import App
from sojourn.app.stand_in import entrances
from sojourn.simulate.workload import Rates
from sojourn.topology import Topology

__all__ = ["OfferedLoad", "offered_load"]


@dataclass(frozen=True, slots=True)
class OfferedLoad:
    """Rates over time, by source of a stand-in."""

    rates: dict[str, Rates]

    @property
    def lasts_s(self) -> float:
        """When the last of them ends."""
        return max(rates.points[-1][0] for rates in self.rates.values())

    def sending(
        self, app: App, servers: str, kafka: Mapping[str, str]
    ) -> AbstractContextManager[object]:
        """Return the process that sends it, until it is left; *kafka* are clients' options."""
        from sojourn.spark.offered_load import Load, Source  # noqa: PLC0415
        from sojourn.spark.producer import LoadProcess  # noqa: PLC0415 - Spark is optional

        sources = tuple(
            Source(topic=app.topic(name), points=rates.points)
            for name, rates in self.rates.items()
        )
        return LoadProcess(
            Load(servers=servers, sources=sources, lasts_s=self.lasts_s, kafka=dict(kafka))
        )


def offered_load(topology: Topology, rates: Rates) -> OfferedLoad:
    """Return *rates* of all roots, shared by sources as *topology* has it."""
    return OfferedLoad(
        {
            entrance.name: rates.times(entrance.per_s / topology.arrivals_per_s)
            for entrance in entrances(topology)
        }
    )

"""The applications of the papers: a topology, and its load."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import ceil

import numpy as np

from sojourn.simulate.workload import Gaps, Rates, Workload
from sojourn.topology import Arrival, Operator, Topology


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """A topology with the distribution of its arrivals.

    With *frame_rates* each stream draws a new rate between them every second. *wire_s* is the
    transfer time between two operators, and *dealt* are operators whose records are distributed
    to their processors in turn: the model knows of neither.
    """

    topology: Topology
    frame_rates: tuple[float, float] | None = None
    gaps: Mapping[str, Gaps] = field(default_factory=dict)
    wire_s: float = 0.0
    dealt: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name of the topology, as the papers write it."""
        return self.topology.name.upper()

    @property
    def running(self) -> Topology:
        """The topology as it runs: with transfer times."""
        return wired(self.topology, self.wire_s)

    def allocation(self, *processors: int) -> dict[str, int]:
        """Return the allocation with *processors* in the order of the operators."""
        return dict(zip(self.topology.operator, processors, strict=True))

    def workload(self, lasts_s: float, seed: int) -> Workload:
        """Return the workload for *lasts_s*."""
        dealt = Workload(gaps=self.gaps, dispatch=dict.fromkeys(self.dealt, "round_robin"))
        if self.frame_rates is None:
            return dealt
        chance = np.random.default_rng([seed, len(self.topology.arrivals)])
        seconds = range(ceil(lasts_s))
        rates = {
            arrival.name: Rates.steps(
                *zip(seconds, chance.uniform(*self.frame_rates, len(seconds)), strict=True)
            )
            for arrival in self.topology.arrivals
        }
        return replace(dealt, rates=rates)


def joined(processors: Iterable[int]) -> str:
    """Return *processors* as the papers write them: 10:11:1."""
    return ":".join(map(str, processors))


def wired(topology: Topology, transfer_s: float) -> Topology:
    """Return *topology* with this transfer time to each operator."""
    operators = tuple(replace(o, transfer_s=transfer_s) for o in topology.operators)
    return replace(topology, operators=operators)


def chain(
    name: str,
    arrivals: tuple[Arrival, ...],
    service_s: Mapping[str, float],
    service_scv: float = 1.0,
) -> Topology:
    """Return a topology in which each operator sends one record to the next."""
    following = [*list(service_s)[1:], None]
    return Topology(
        name=name,
        arrivals=arrivals,
        operators=tuple(
            Operator(
                name=operator,
                service_s=seconds,
                service_scv=service_scv,
                emits={after: 1.0} if after else {},
            )
            for (operator, seconds), after in zip(service_s.items(), following, strict=True)
        ),
    )


def vld(
    *service_s: float, service_scv: float = 0.3, gap_scv: float = 0.0, videos: int = 1
) -> Topology:
    """Return video logo detection, a chain, fed by *videos* of 13 frames/s on average."""
    arrivals = tuple(
        Arrival(name=f"video-{number}", per_s=13, scv=gap_scv, into="extract")
        for number in range(1, videos + 1)
    )
    names = ("extract", "match", "aggregate")
    return chain("vld", arrivals, dict(zip(names, service_s, strict=True)), service_scv)


VLD = Application(topology=vld(0.52, 0.58, 0.01), frame_rates=(1.0, 25.0))

FPD = Application(
    topology=Topology(
        name="fpd",
        arrivals=(
            Arrival(name="entering", per_s=160, into="generate"),
            Arrival(name="leaving", per_s=160, into="generate"),
        ),
        operators=(
            Operator(name="generate", service_s=0.0146, emits={"detect": 2}),
            Operator(name="detect", service_s=0.0138, emits={"detect": 0.2, "report": 0.3}),
            Operator(name="report", service_s=0.0078),
        ),
    ),
    wire_s=0.02,
)

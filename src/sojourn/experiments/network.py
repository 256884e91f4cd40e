"""Figure 8 of DRS-15: what the network adds is lost beside enough computation."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from sojourn.experiments.application import Application
from sojourn.experiments.bench import Bench
from sojourn.experiments.fixed_allocation import fixed
from sojourn.experiments.record import About, Findings, Table, Verdict
from sojourn.model.network import mean_s
from sojourn.report.panel import Panel, Series
from sojourn.topology import Arrival, Operator, Topology

__all__ = ["NetworkCost", "falling"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkCost:
    """A chain of three operators that compute more and more per record.

    The load is *busy* of the processors throughout, so that only the wire differs.
    """

    about: About
    cpu_s: tuple[float, ...]
    processors: tuple[int, int, int]
    busy: float
    wire_s: float
    roots: int

    def chain(self, cpu_s: float) -> Application:
        """Return the chain whose three operators take *cpu_s* together."""
        names = ("first", "second", "third")
        per_s = self.busy * sum(self.processors) / cpu_s
        return Application(
            topology=Topology(
                name="chain",
                arrivals=(Arrival(name="in", per_s=per_s, into=names[0]),),
                operators=tuple(
                    Operator(
                        name=name,
                        service_s=cpu_s / len(names),
                        emits={after: 1.0} if after else {},
                    )
                    for name, after in zip(names, (*names[1:], ""), strict=True)
                ),
            ),
            wire_s=self.wire_s,
        )

    def run(self, bench: Bench) -> Findings:
        """Return how far estimates are off at each workload."""
        rows = []
        for cpu_s in self.cpu_s:
            chain = self.chain(cpu_s)
            allocation = chain.allocation(*self.processors)
            lasts_s = self.roots / chain.topology.arrivals_per_s
            did = fixed(bench, chain, allocation, lasts_s)
            estimated_s = mean_s(chain.topology, allocation, model="mmk")
            rows.append((cpu_s, estimated_s, did.mean.value, did.mean.value / estimated_s))
        ratios = [row[-1] for row in rows]
        line = Series(label="ratio", x=[1000 * row[0] for row in rows], y=ratios)
        panel = Panel(
            kind="lines",
            title="how much is underestimated",
            x_label="CPU time of the three operators, ms",
            y_label="measured / estimated",
            series=(line,),
            levels={"none": 1.0},
            log_x=True,
        )
        return Findings(
            table=Table(("cpu_s", "estimated_s", "mean_s", "ratio"), rows),
            panels=(panel,),
            verdicts=(falling(ratios),),
        )


def falling(ratios: Sequence[float]) -> Verdict:
    """Return whether the underestimation falls as records take more computation."""
    # chance may tip the last ones, where hardly anything is left to fall
    falls = all(after < before or after < 1.1 for before, after in pairwise(ratios))
    return Verdict(
        point="measured over estimated falls as CPU time grows",
        holds=falls and ratios[-1] < ratios[0],
        numbers=" > ".join(f"{ratio:.3g}" for ratio in ratios),
    )

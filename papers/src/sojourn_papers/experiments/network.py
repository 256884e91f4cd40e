"""Figure 8 of DRS-15: the more a record computes, the less the network matters."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from sojourn.report.panel import Panel, Series
from sojourn.topology import Arrival
from sojourn_papers.experiments.application import Application, chain
from sojourn_papers.experiments.bench import Bench
from sojourn_papers.experiments.fixed_allocation import fixed
from sojourn_papers.experiments.record import About, Findings, Table, Verdict


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
        per_s = self.busy * sum(self.processors) / cpu_s
        names = ("first", "second", "third")
        arrivals = (Arrival(name="in", per_s=per_s, into=names[0]),)
        service_s = dict.fromkeys(names, cpu_s / len(names))
        return Application(topology=chain("chain", arrivals, service_s), wire_s=self.wire_s)

    def run(self, bench: Bench) -> Findings:
        """Return how far estimates are off at each workload."""
        did = {}
        for cpu_s in self.cpu_s:
            chained = self.chain(cpu_s)
            lasts_s = self.roots / chained.topology.arrivals_per_s
            did[cpu_s] = fixed(bench, chained, self.processors, lasts_s)
        ratios = [one.ratio for one in did.values()]
        line = Series(label="ratio", x=[1000 * cpu_s for cpu_s in did], y=ratios)
        panel = Panel(
            kind="lines",
            title="measured mean over estimated mean",
            x_label="CPU time of the three operators, ms",
            y_label="measured / estimated",
            series=(line,),
            levels={"none": 1.0},
            log_x=True,
        )
        return Findings(
            table=Table(
                ("cpu_s", "estimated_s", "mean_s", "ratio"),
                [(cpu_s, d.mmk_s, d.mean.value, d.ratio) for cpu_s, d in did.items()],
            ),
            panels=(panel,),
            verdicts=(falling(ratios),),
        )


def falling(ratios: Sequence[float]) -> Verdict:
    """Return whether the underestimation falls as records take more computation."""
    # chance may tip the last ones, where hardly anything is left to fall
    falls = all(after < before or after < 1.1 for before, after in pairwise(ratios))
    return Verdict(
        point="the ratio of measured to estimated mean falls as CPU time grows",
        holds=falls and ratios[-1] < ratios[0],
        numbers=" > ".join(f"{ratio:.3g}" for ratio in ratios),
    )

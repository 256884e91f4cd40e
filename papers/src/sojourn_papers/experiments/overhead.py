"""Table II of both papers: the cost of deciding and measuring, by number of processors."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from statistics import median
from time import perf_counter

from sojourn.decide.assign import assign
from sojourn.decide.plan import Plan
from sojourn.measure.aggregate import aggregate
from sojourn.measure.report import Pull
from sojourn.report.panel import Panel, Series
from sojourn_papers.experiments.application import Application
from sojourn_papers.experiments.bench import Bench, Conditions
from sojourn_papers.experiments.record import About, Findings, Table, Verdict

_MINUTE_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Overhead:
    """Three operators with fixed loads, and *paper_ms* of scheduling for each K_max.

    In the papers the number of *tasks* of an operator never changes, and each of them reports.
    Here each processor reports, which is timed as well.
    """

    about: About
    application: Application
    paper_ms: Mapping[int, float]
    tasks: tuple[int, ...]
    rounds: int = 401

    def run(self, bench: Bench) -> Findings:
        """Return milliseconds of scheduling and measuring."""
        topology = self.application.topology
        fixed = self._pull(bench, self.application.allocation(*self.tasks))
        own = {
            k: self._pull(bench, assign(topology, k, model="mmk").allocation)
            for k in self.paper_ms
        }
        measure = partial(aggregate, topology=topology, every_s=_MINUTE_S)
        scheduling = self._medians_ms(
            {k: partial(assign, topology, k, model="mmk") for k in own}
        )
        measuring = self._medians_ms({k: partial(measure, fixed) for k in own})
        reporting = self._medians_ms({k: partial(measure, pull) for k, pull in own.items()})
        columns = ("K_max", "scheduling_ms", "paper_ms", "measurement_ms", "each_reports_ms")
        rows = [
            (k, scheduling[k], paper_ms, measuring[k], reporting[k])
            for k, paper_ms in self.paper_ms.items()
        ]
        lines = {
            "scheduling": scheduling,
            "scheduling, the papers": self.paper_ms,
            "measurement, fixed tasks": measuring,
            "measurement, each processor reports": reporting,
        }
        panel = Panel(
            kind="lines",
            title="what DRS costs",
            x_label="K_max",
            y_label="ms",
            series=tuple(
                Series(label=label, x=list(ms), y=list(ms.values()))
                for label, ms in lines.items()
            ),
        )
        return Findings(
            table=Table(columns, rows),
            panels=(panel,),
            verdicts=(
                below_the_papers(scheduling),
                linear(scheduling),
                independent(measuring),
                by_reports(reporting),
            ),
        )

    def _pull(self, bench: Bench, allocation: Mapping[str, int]) -> Pull:
        workload = self.application.workload(_MINUTE_S, bench.seed)
        with bench.engine(Conditions(workload=workload, seed=bench.seed)) as engine:
            engine.start(self.application.running, Plan.here(allocation))
            return engine.observe(_MINUTE_S)

    def _medians_ms(self, calls: Mapping[int, Callable[[], object]]) -> dict[int, float]:
        """Return how long each of *calls* takes.

        A round times each in turn, so that all see the same disturbances, and one by one: on a
        busy machine most single calls are not interrupted, but most batches of ten would be.
        """
        took: dict[int, list[float]] = {key: [] for key in calls}
        for _ in range(self.rounds):
            for key, call in calls.items():
                began = perf_counter()
                call()
                took[key].append(perf_counter() - began)
        return {key: 1000 * median(times) for key, times in took.items()}


# -- verdicts -------------------------------------------------------------------------------


def below_the_papers(scheduling: Mapping[int, float]) -> Verdict:
    """Return whether a decision takes about a millisecond, or less."""
    return Verdict(
        point="a decision takes less than 2 ms",
        holds=max(scheduling.values()) < 2.0,
        numbers=", ".join(f"{ms:.3f} ms for {k}" for k, ms in scheduling.items()),
    )


def linear(scheduling: Mapping[int, float]) -> Verdict:
    """Return whether twice as many further processors take about twice as much longer.

    Differences are compared, because every decision has a cost that K_max does not change.
    """
    *_, few, some, many = scheduling
    first = scheduling[some] - scheduling[few]
    growth = (scheduling[many] - scheduling[some]) / first if first > 0 else 0.0
    return Verdict(
        point="scheduling time grows about linearly with K_max",
        holds=1.0 < growth < 3.5,
        numbers=(
            f"the increase from {some} to {many} is {growth:.2f} times that from {few} to "
            f"{some}; 2 would be linear, 4 quadratic"
        ),
    )


def independent(measuring: Mapping[int, float]) -> Verdict:
    """Return whether measuring takes the same time at any number of processors."""
    apart = max(measuring.values()) / min(measuring.values())
    return Verdict(
        point="measuring time does not depend on K_max if the number of tasks is fixed",
        holds=apart < 1.5,
        numbers=f"{min(measuring.values()):.3f} to {max(measuring.values()):.3f} ms",
    )


def by_reports(reporting: Mapping[int, float]) -> Verdict:
    """Return whether measuring takes longer the more report."""
    few, *_, many = reporting
    few_ms, many_ms = reporting[few], reporting[many]
    return Verdict(
        point="measuring time depends on the number of reports",
        holds=many_ms > 2 * few_ms,
        numbers=f"{few_ms:.3f} ms for {few} reports, {many_ms:.3f} ms for {many}",
    )

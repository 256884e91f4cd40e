"""The load of `run`: a trace to generate, or rates of sources."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Annotated

from typer import Option

from sojourn.app.address import is_application
from sojourn.app.application import App
from sojourn.app.waiting_app import entrances
from sojourn.cli.options.address import read_rate_options
from sojourn.cli.options.group import Group
from sojourn.cli.options.stage import FasterOption, TimesOption
from sojourn.simulate.trace import read_rates
from sojourn.simulate.workload import Rates
from sojourn.topology.file import read_topology


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedLoad:
    rates: Mapping[str, float]
    """Records per second of each source, on the simulator."""
    trace: Rates | None
    """Roots per second over time, all sources together."""

    @property
    def lasts_s(self) -> float:
        """The length of the trace; infinite without one."""
        return inf if self.trace is None else self.trace.points[-1][0]

    def by_source(self, app: App, address: str) -> dict[str, tuple[tuple[float, float], ...]]:
        """Return the points of the trace by source.

        The sources of an application share it equally, those of a topology file in proportion
        to their rates.

        Raise `BadApplication` if a source has no samples that could be sent.
        """
        if self.trace is None:
            return {}
        if not is_application(address):
            shared = self.trace.among(entrances(read_topology(Path(address))))
            return {name: rates.points for name, rates in shared.items()}
        from sojourn.spark.driver.load.offered_load import load_sources  # noqa: PLC0415 - optional

        each = dict.fromkeys(app.sources, self.trace.times(1 / len(app.sources)).points)
        load_sources(app, address, each)  # only for its checks: fail before anything starts
        return each


def _read_load(
    *,
    trace: Annotated[
        Path | None,
        Option(
            metavar="CSV",
            help="Generate this load: CSV with timestamp,rate. On Spark an application sends "
            "the samples of its sources.",
        ),
    ] = None,
    times: TimesOption = 1.0,
    faster: FasterOption = 1.0,
    rate: Annotated[
        list[str] | None,
        Option(
            metavar="SOURCE=PER_S",
            help="simulator: records per second of a source: payments=40; may be repeated.",
        ),
    ] = None,
) -> OfferedLoad:
    return OfferedLoad(
        rates=read_rate_options(rate),
        trace=None if trace is None else read_rates(trace, times=times, faster=faster),
    )


LoadOptions = Annotated[OfferedLoad, Group(_read_load)]

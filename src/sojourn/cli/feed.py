"""`sojourn feed`: send sample records to the sources of an application."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from sojourn.app.address import load_here
from sojourn.app.application import App
from sojourn.cli.options import JsonOption
from sojourn.cli.options.address import read_rate_options
from sojourn.cli.options.kafka import KafkaOptions, kafka_of
from sojourn.cli.options.stage import FasterOption, TimesOption
from sojourn.errors import BadInput, BadWorkload
from sojourn.measure.duration import read_positive_s
from sojourn.registry import optional
from sojourn.report.json.output import print_json
from sojourn.report.terminal.progress import working
from sojourn.service.interrupts import Interrupts
from sojourn.simulate.trace import read_rates
from sojourn.simulate.workload import Rates
from sojourn.text import shown

if TYPE_CHECKING:  # Kafka's client is optional
    from sojourn.spark.driver.load.offered_load import Gaps

_NOT_ALL = 3


def feed(
    address: Annotated[
        str,
        Argument(
            metavar="APP", help="The application, package.module:app; its sources have samples."
        ),
    ],
    *,
    rate: Annotated[
        list[str] | None,
        Option(
            metavar="PER_S",
            help="Records per second: 13; for several sources payments=13, repeated.",
        ),
    ] = None,
    trace: Annotated[
        Path | None,
        Option(
            metavar="CSV",
            help="Changing rates: CSV with timestamp,rate, divided among the sources in "
            "proportion to --rate.",
        ),
    ] = None,
    times: TimesOption = 1.0,
    faster: FasterOption = 1.0,
    gaps: Annotated[
        str,
        Option(
            help="Pattern of arrivals: poisson, constant, uniform (gaps of 0 to 2 times the "
            "mean), batches:10 (ten records at once), or the scv of gaps: 0.28."
        ),
    ] = "poisson",
    lasts: Annotated[
        str | None,
        Option(
            "--for",
            metavar="TIME",
            help="Stop after this time (default: the end of the trace).",
        ),
    ] = None,
    records: Annotated[
        int | None, Option(min=1, help="Stop after this many records per source.")
    ] = None,
    seed: Annotated[
        int, Option(min=0, help="The same seed sends the same records at the same times.")
    ] = 1,
    bootstrap_servers: Annotated[
        str | None,
        Option(
            metavar="HOST:PORT,…",
            help="Kafka brokers (default: those of the running application).",
        ),
    ] = None,
    kafka: KafkaOptions,
    json: JsonOption = False,
) -> None:
    """Send sample records to the sources of an application, at the rate you choose.

    The application runs in another terminal. Ctrl-C: stop, and print what was sent.

    Example: sojourn feed examples.wordcount:app --rate 100 --for 1m
    """
    app = load_here(address)
    shape, at_once = read_feed_gaps(gaps)
    changing = None if trace is None else read_rates(trace, times=times, faster=faster)
    rates = _rates(app, rate or (), changing)
    lasts_s = None if changing is None else changing.points[-1][0]
    if lasts is not None:
        lasts_s = read_positive_s(lasts, "--for")
    _, reached = kafka_of(app.name, bootstrap_servers, None, "--bootstrap-servers HOST:PORT")
    clients = {**reached, **kafka}
    with optional("feed needs", "spark"):
        from sojourn.spark.driver.load.offered_load import Load, load_sources  # noqa: PLC0415
        from sojourn.spark.driver.load.sender import Sender  # noqa: PLC0415
    sender = Sender(
        Load(
            servers=clients.pop("bootstrap.servers"),
            sources=load_sources(
                app, address, rates, gaps=shape, at_once=at_once, most=records
            ),
            lasts_s=lasts_s,
            seed=seed,
            kafka=clients,
        )
    )
    with Interrupts() as interrupts, working(f"feeding {app.name}") as progress:
        interrupts.breaks = sender.stop
        sent = sender.run(lambda number: progress(f"{number} records"))
    if json:
        print_json(sent.as_json())
    else:
        typer.echo(str(sent))
    if sent.error:
        raise typer.Exit(_NOT_ALL)


def read_feed_gaps(text: str) -> "tuple[Gaps, int]":
    """Return the pattern of arrivals, and the number of records per arrival.

    >>> read_feed_gaps("uniform"), read_feed_gaps("batches:10"), read_feed_gaps("0.28")
    (('uniform', 1), ('poisson', 10), (0.28, 1))
    """
    if text in ("poisson", "constant", "uniform"):
        return text, 1  # type: ignore[return-value]
    batches, _, size = text.partition(":")
    try:
        return ("poisson", int(size)) if batches == "batches" else (float(text), 1)
    except ValueError:
        raise BadWorkload(
            f"{shown(text)} is not a pattern of arrivals; write poisson, constant, uniform, "
            "batches:10, or the scv of gaps"
        ) from None


def _rates(
    app: App, texts: Sequence[str], trace: Rates | None
) -> dict[str, tuple[tuple[float, float], ...]]:
    """Return the load of each source as points of time and rate."""
    sources = list(app.samples or app.sources)
    if not texts and trace is None:
        raise BadInput("no rate is given; write --rate 13, or --trace rates.csv")
    if len(texts) == 1 and "=" not in texts[0] and len(sources) == 1:
        texts = [f"{sources[0]}={texts[0]}"]
    per_s = read_rate_options(texts) or dict.fromkeys(sources, 1.0)
    for name in per_s.keys() - app.sources.keys():
        known = ", ".join(app.sources)
        raise BadInput(f"--rate {name}: there is no such source; there are {known}")
    if trace is None:
        return {name: ((0.0, rate),) for name, rate in per_s.items()}
    whole = sum(per_s.values())
    return {name: trace.times(rate / whole).points for name, rate in per_s.items()}

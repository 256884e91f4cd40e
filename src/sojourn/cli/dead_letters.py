"""`sojourn dead-letters` and `retry`: the records that operators could not process."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from sojourn.cli.options import JsonOption
from sojourn.cli.options.address import AppOption
from sojourn.cli.options.group import Group
from sojourn.cli.options.kafka import KafkaOptions, kafka_of
from sojourn.errors import BadInput, BadTarget
from sojourn.measure.duration import read_duration_s
from sojourn.registry import optional
from sojourn.report.json.listings import letter_json
from sojourn.report.json.output import print_json
from sojourn.report.terminal.listings import print_letter, print_letters
from sojourn.spark.driver.settings import read_starting
from sojourn.text import escaped_lines

if TYPE_CHECKING:  # Kafka's client is optional
    from sojourn.spark.driver.kafka.dead_letters import DeadLetters

_NOT_ALL = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Letters:
    """A selection of the dead letters of an application."""

    app: str | None
    servers: str | None
    state: Path | None
    kafka: Mapping[str, str] = field(repr=False)  # may contain secrets
    since_s: float | None = None
    """Only letters from this time on; None is all."""

    def opened(self) -> "DeadLetters":
        """Connect to the dead letters of a running application, or of *app* on *servers*."""
        name, clients = kafka_of(self.app, self.servers, self.state)
        with optional("dead letters need", "spark"):
            from sojourn.spark.driver.kafka.dead_letters import DeadLetters  # noqa: PLC0415
        return DeadLetters(name, {**clients, **self.kafka})


def _read_letters(
    *,
    since: Annotated[
        str | None,
        Option(metavar="WHEN", help="Only newer ones: 2h (ago), or 2026-01-31T12:00:00Z."),
    ] = None,
    app: AppOption = None,
    bootstrap_servers: Annotated[
        str | None,
        Option(
            metavar="HOST:PORT,…",
            help="Kafka brokers of an application that does not run; with --app or --state.",
        ),
    ] = None,
    state: Annotated[
        Path | None,
        Option(metavar="DIR", help="State folder of an application that does not run."),
    ] = None,
    kafka: KafkaOptions,
) -> Letters:
    since_s = None if since is None else _read_since_s(since)
    return Letters(
        app=app, servers=bootstrap_servers, state=state, kafka=kafka, since_s=since_s
    )


_LettersOptions = Annotated[Letters, Group(_read_letters)]


def _read_since_s(text: str) -> float:
    """Return the time in `2h` (ago) or `2026-01-31T12:00:00Z`, in seconds since 1970."""
    try:
        return time() - read_duration_s(text.removesuffix("ago"))
    except BadTarget:
        at = read_starting(text)
    if isinstance(at, str):
        raise BadInput(f"--since {text} is not a time; write 2h or 2026-01-31T12:00:00Z")
    return at


def dead_letters(
    *,
    show: Annotated[
        str | None,
        Option(metavar="POSITION", help="Show one with its traceback, headers and payload."),
    ] = None,
    limit: Annotated[
        int, Option("--limit", "-n", min=1, help="Number to list, the newest.")
    ] = 100,
    which: _LettersOptions,
    json: JsonOption = False,
) -> None:
    """List the records that operators could not process, the newest last.

    Those that were retried are not listed.

    Example: sojourn dead-letters --since 2h
    """
    letters = which.opened()
    if show is not None:
        (one,) = letters.chosen(which.since_s, [show])
        if json:
            print_json(letter_json(one))
        else:
            print_letter(one)
        return
    found = letters.found(which.since_s)
    shown = found[-limit:]
    if json:
        listed = [letter_json(letter) for letter in shown]
        print_json({"topic": letters.topic, "number": len(found), "dead_letters": listed})
    elif not found:
        typer.echo(f"no dead letters in {letters.topic}")
    else:
        print_letters(shown)
        if len(shown) < len(found):
            typer.echo(f"the last {len(shown)} of {len(found)}; --limit shows more")


def retry(
    positions: Annotated[
        list[str] | None,
        Argument(
            metavar="POSITION …", help="Dead letters to retry, as `dead-letters` lists them."
        ),
    ] = None,
    *,
    operator: Annotated[
        list[str] | None, Option(help="Retry those of this operator; may be repeated.")
    ] = None,
    every: Annotated[bool, Option("--all", help="Retry all.")] = False,
    which: _LettersOptions,
) -> None:
    """Retry dead letters at the operators that failed. Correct the cause first.

    Each record is written, unchanged and with its id, to the topic it came from; other
    operators that read this topic skip it.

    Example: sojourn retry --operator parse
    """
    if not (positions or operator or every):
        raise BadInput(
            "no dead letters are selected; write positions, --operator NAME, or --all"
        )
    letters = which.opened()
    chosen = letters.chosen(which.since_s, positions or (), operator or ())
    from sojourn.spark.driver.kafka.retry import retry_letters  # noqa: PLC0415 - optional, checked before

    failed = 0
    for letter, why_not in retry_letters(letters, chosen):
        if why_not:
            failed += 1
            said = f"{letter.position} was not retried: {why_not}"
            typer.echo(escaped_lines(said), err=True)
    typer.echo(f"{len(chosen) - failed} of {len(chosen)} dead letters were retried")
    if failed:
        raise typer.Exit(_NOT_ALL)

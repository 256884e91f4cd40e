"""The options of `dead-letters` and `retry` that select dead letters."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Annotated

from typer import Option

from sojourn.cli.options.application import AppOption
from sojourn.cli.options.group import Group
from sojourn.cli.options.kafka import KafkaOptions
from sojourn.errors import BadInput, BadTarget
from sojourn.measure.duration import read_duration_s
from sojourn.registry import optional
from sojourn.service.kafka import kafka_of
from sojourn.spark.driver.settings import read_starting

if TYPE_CHECKING:  # Kafka's client is optional
    from sojourn.spark.driver.kafka.dead_letters import DeadLetters

__all__ = ["Letters", "LettersOptions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Letters:
    """Selects the dead letters of an application that are newer than *since_s*."""

    app: str | None
    servers: str | None
    state: Path | None
    kafka: Mapping[str, str] = field(repr=False)  # may contain secrets
    since_s: float | None = None

    def opened(self) -> "DeadLetters":
        """Return the dead letters of a running application, or of *app* on *servers*."""
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
    """Return what the options select."""
    since_s = None if since is None else _read_since_s(since)
    return Letters(
        app=app, servers=bootstrap_servers, state=state, kafka=kafka, since_s=since_s
    )


LettersOptions = Annotated[Letters, Group(_read_letters)]


def _read_since_s(text: str) -> float:
    """Return the time of the first letter: `2h` ago, or 2026-01-31T12:00:00Z."""
    try:
        return time() - read_duration_s(text.removesuffix("ago"))
    except BadTarget:
        at = read_starting(text)
    if isinstance(at, str):
        raise BadInput(f"--since {text} is not a time; write 2h or 2026-01-31T12:00:00Z")
    return at

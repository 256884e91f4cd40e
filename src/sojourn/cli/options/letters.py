"""Where the dead letters of an application are: what `dead-letters` and `retry` share."""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sojourn.cli.options.application import AppOption
from sojourn.cli.options.duration import read_duration_s
from sojourn.cli.options.group import Group
from sojourn.cli.options.kafka import KafkaOptions, read_starting
from sojourn.errors import BadFile, BadInput, BadTarget, EngineError
from sojourn.service.client import ask
from sojourn.service.entry import find

if TYPE_CHECKING:  # Kafka's client is optional
    from sojourn.spark.dead_letters import DeadLetters

__all__ = ["Letters", "LettersOptions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Letters:
    """Which dead letters: those of an application, later than *since_s*."""

    app: str | None
    servers: str | None
    state: Path | None
    kafka: Mapping[str, str] = field(repr=False)  # there may be secrets in it
    since_s: float | None = None

    def opened(self) -> "DeadLetters":
        """Return those of an application that runs, or that is named with its Kafka."""
        if self.servers is None:
            if self.state is not None:
                name = _named_in(self.state)
                raise BadInput(
                    f"where the Kafka of {name} is, {self.state} does not tell; write "
                    "--bootstrap-servers, or start it: a broker of its own runs only while it "
                    "does"
                )
            name, clients = _running(self.app)
        else:
            if self.app is None and self.state is None:
                raise BadInput("whose dead letters? name the application with --app or --state")
            name = self.app if self.app is not None else _named_in(self.state or Path())
            clients = {"bootstrap.servers": self.servers}
        try:
            from sojourn.spark.dead_letters import DeadLetters  # noqa: PLC0415 - optional
        except ImportError as error:
            raise EngineError(
                "it needs confluent-kafka, which is not installed; install sojourn[spark]"
            ) from error
        return DeadLetters(name, {**clients, **self.kafka})


def _read_letters(
    *,
    since: Annotated[
        str | None,
        typer.Option(metavar="WHEN", help="Only later ones: 2h ago, or 2026-01-31T12:00:00Z."),
    ] = None,
    app: AppOption = None,
    bootstrap_servers: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT,…",
            help="Its Kafka, where it does not run; with --app or --state.",
        ),
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Its state, which tells its name where it does not run."
        ),
    ] = None,
    kafka: KafkaOptions,
) -> Letters:
    """Return which dead letters are meant."""
    return Letters(
        app=app,
        servers=bootstrap_servers,
        state=state,
        kafka=kafka,
        since_s=_read_since(since),
    )


LettersOptions = Annotated[Letters, Group(_read_letters)]


def _read_since(text: str | None) -> float | None:
    """Return the time from which on letters count, in seconds since 1970."""
    if text is None:
        return None
    try:
        return time.time() - read_duration_s(text.removesuffix("ago"))
    except BadTarget:
        at = read_starting(text)
    if isinstance(at, str):
        raise BadInput(f"--since {text} is no time; write 2h, or 2026-01-31T12:00:00Z")
    return at


def _running(app: str | None) -> tuple[str, Mapping[str, str]]:
    try:
        folder, entry = find(app)
    except EngineError as error:
        raise EngineError(
            f"{error}. Of one that has ended: --bootstrap-servers HOST:PORT --app NAME; a "
            "broker of its own runs only while the application does"
        ) from error
    told: dict[str, Any] = ask(folder, entry, {"ask": "kafka"})
    return entry.name, told["clients"]


def _named_in(state: Path) -> str:
    path = state / "application.json"
    try:
        return str(json.loads(path.read_text(encoding="utf-8"))["application"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadFile(
            str(path), "does not tell of which application it is", "name it with --app"
        ) from error

"""The options of `dead-letters` and `retry` that select dead letters."""

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
    """Selects the dead letters of an application that are newer than *since_s*."""

    app: str | None
    servers: str | None
    state: Path | None
    kafka: Mapping[str, str] = field(repr=False)  # may contain secrets
    since_s: float | None = None

    def opened(self) -> "DeadLetters":
        """Return the dead letters of a running application, or of *app* on *servers*."""
        if self.servers is None:
            if self.state is not None:
                name = _named_in(self.state)
                raise BadInput(
                    f"{self.state} does not say where the Kafka of {name} is; add "
                    "--bootstrap-servers, or start the application if it has its own broker"
                )
            name, clients = _running(self.app)
        else:
            if self.app is None and self.state is None:
                raise BadInput("no application is named; add --app or --state")
            name = self.app if self.app is not None else _named_in(self.state or Path())
            clients = {"bootstrap.servers": self.servers}
        try:
            from sojourn.spark.dead_letters import DeadLetters  # noqa: PLC0415 - optional
        except ImportError as error:
            raise EngineError(
                "dead letters need confluent-kafka, which is not installed; "
                "install sojourn[spark]"
            ) from error
        return DeadLetters(name, {**clients, **self.kafka})


def _read_letters(
    *,
    since: Annotated[
        str | None,
        typer.Option(
            metavar="WHEN", help="Only newer ones: 2h (ago), or 2026-01-31T12:00:00Z."
        ),
    ] = None,
    app: AppOption = None,
    bootstrap_servers: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT,…",
            help="Kafka brokers, if it does not run; with --app or --state.",
        ),
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="State folder, if it does not run."),
    ] = None,
    kafka: KafkaOptions,
) -> Letters:
    """Return what the options select."""
    return Letters(
        app=app,
        servers=bootstrap_servers,
        state=state,
        kafka=kafka,
        since_s=_read_since(since),
    )


LettersOptions = Annotated[Letters, Group(_read_letters)]


def _read_since(text: str | None) -> float | None:
    """Return the time of the first letter, in seconds since 1970."""
    if text is None:
        return None
    try:
        return time.time() - read_duration_s(text.removesuffix("ago"))
    except BadTarget:
        at = read_starting(text)
    if isinstance(at, str):
        raise BadInput(f"--since {text} is not a time; write 2h or 2026-01-31T12:00:00Z")
    return at


def _running(app: str | None) -> tuple[str, Mapping[str, str]]:
    try:
        folder, entry = find(app)
    except EngineError as error:
        raise EngineError(
            f"{error}. If it has ended, add --bootstrap-servers HOST:PORT --app NAME; its own "
            "broker runs only while the application does"
        ) from error
    answer: dict[str, Any] = ask(folder, entry, {"ask": "kafka"})
    return entry.name, answer["clients"]


def _named_in(state: Path) -> str:
    path = state / "application.json"
    try:
        return str(json.loads(path.read_text(encoding="utf-8"))["application"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadFile(str(path), "does not name its application", "add --app") from error

"""Where the dead letters of an application are: what `dead-letters` and `retry` share."""

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sojourn.cli.kafka import read_kafka_options, read_starting
from sojourn.cli.options import read_duration_s
from sojourn.errors import BadFile, BadInput, BadTarget, EngineError
from sojourn.service.client import ask
from sojourn.service.entry import find

if TYPE_CHECKING:  # Kafka's client is optional
    from sojourn.spark.dead_letters import DeadLetters

__all__ = [
    "KafkaOption",
    "KafkaOptionsOption",
    "ServersOption",
    "SinceOption",
    "StateOption",
    "opened",
    "read_since",
]

ServersOption = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT,…",
        help="Its Kafka, where it does not run; with --app or --state.",
    ),
]
StateOption = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Its state, which tells its name where it does not run."),
]
KafkaOption = Annotated[
    list[str] | None,
    typer.Option(metavar="KEY=VALUE", help="For Kafka's clients; may be repeated."),
]
KafkaOptionsOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="The same, from a file: key=value on each line."),
]
SinceOption = Annotated[
    str | None,
    typer.Option(metavar="WHEN", help="Only later ones: 2h ago, or 2026-01-31T12:00:00Z."),
]


def opened(
    app: str | None,
    servers: str | None,
    state: Path | None,
    kafka_option: list[str] | None,
    kafka_options: Path | None,
) -> "DeadLetters":
    """Return the dead letters of an application that runs, or that is named with its Kafka."""
    options = read_kafka_options(kafka_option or (), kafka_options)
    if servers is None:
        if state is not None:
            name = _named_in(state)
            raise BadInput(
                f"where the Kafka of {name} is, {state} does not tell; write "
                "--bootstrap-servers, or start it: a broker of its own runs only while it does"
            )
        name, clients = _running(app)
    else:
        if app is None and state is None:
            raise BadInput("whose dead letters? name the application with --app or --state")
        name = app if app is not None else _named_in(state or Path())
        clients = {"bootstrap.servers": servers}
    try:
        from sojourn.spark.dead_letters import DeadLetters  # noqa: PLC0415 - optional
    except ImportError as error:
        raise EngineError(
            "it needs confluent-kafka, which is not installed; install sojourn[spark]"
        ) from error
    return DeadLetters(name, {**clients, **options})


def read_since(text: str | None) -> float | None:
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

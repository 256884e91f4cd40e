"""Options for Kafka and Spark. Values of client options are never printed."""

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from sojourn.cli.options.duration import read_duration_s
from sojourn.cli.options.group import Group
from sojourn.errors import BadFile, BadInput
from sojourn.spark.settings import SparkSettings
from sojourn.topology.check import shown

__all__ = ["KafkaOptions", "SparkEngineOptions", "read_kafka_options", "read_starting"]


def read_kafka_options(texts: Iterable[str], file: Path | None) -> dict[str, str]:
    """Return the options in *file*, overridden by those in *texts*, `key=value`.

    A file has one per line; empty lines and those that begin with # are ignored.

    >>> read_kafka_options(["security.protocol=SSL"], None)
    {'security.protocol': 'SSL'}
    """
    options: dict[str, str] = {}
    if file is not None:
        try:
            lines = file.read_text(encoding="utf-8").splitlines()
        except (OSError, ValueError) as error:
            problem = getattr(error, "strerror", None) or "is not UTF-8"
            raise BadFile(str(file), f"cannot be read: {problem}", "check the path") from error
        for number, line in enumerate(lines, start=1):
            if line.strip() and not line.lstrip().startswith("#"):
                options.update(_option(line, f"{file}:{number}"))
    for number, text in enumerate(texts, start=1):
        options.update(_option(text, f"--kafka-option number {number}"))
    return options


def read_starting(text: str) -> str | float:
    """Return earliest, latest, or the seconds since 1970 of a time with a time zone.

    >>> read_starting("latest"), read_starting("2026-01-31T12:00:00Z")
    ('latest', 1769860800.0)
    """
    if text in ("earliest", "latest"):
        return text
    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        raise BadInput(
            f"{shown(text)} is not a start; write earliest, latest "
            "or a time such as 2026-01-31T12:00:00Z"
        ) from error
    if at.utcoffset() is None:
        raise BadInput(f"{text} has no time zone; write {text}Z")
    return at.timestamp()


def _read_clients(
    *,
    kafka_option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="Option of Kafka's clients; may be repeated. Put secrets into "
            "--kafka-options: other users can read the command line.",
        ),
    ] = None,
    kafka_options: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Options of Kafka's clients: a file with key=value lines."
        ),
    ] = None,
) -> dict[str, str]:
    """Return the options of Kafka's clients."""
    return read_kafka_options(kafka_option or (), kafka_options)


KafkaOptions = Annotated[dict[str, str], Group(_read_clients)]


def _read_spark(
    *,
    bootstrap_servers: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT,…", help="Kafka brokers (default: starts its own)."),
    ] = None,
    kafka: KafkaOptions,
    kafka_patience: Annotated[
        str,
        typer.Option(
            metavar="TIME", help="Time to wait while no broker answers, before it stops."
        ),
    ] = "15m",
    broker_port: Annotated[
        int | None,
        typer.Option(min=1, max=65535, help="Port of its own broker (default: a free one)."),
    ] = None,
    starting_offsets: Annotated[
        str,
        typer.Option(
            metavar="WHERE",
            help="Where sources begin at the first start: earliest, latest, or a time.",
        ),
    ] = "earliest",
    batch: Annotated[
        str, typer.Option(metavar="TIME", help="Time between two commits.")
    ] = "60s",
) -> SparkSettings:
    """Return the settings of the engine."""
    if broker_port is not None and bootstrap_servers is not None:
        raise BadInput(
            f"--broker-port {broker_port} is for its own broker, and --bootstrap-servers "
            f"{bootstrap_servers} names others; leave out one of them"
        )
    return SparkSettings(
        servers=bootstrap_servers,
        kafka=kafka,
        batch_s=read_duration_s(batch),
        starting=read_starting(starting_offsets),
        patience_s=read_duration_s(kafka_patience),
        broker_port=broker_port,
    )


SparkEngineOptions = Annotated[SparkSettings, Group(_read_spark)]


def _option(text: str, place: str) -> dict[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        # the text may be a secret, so it is not shown
        raise BadInput(f"{place} is not key=value; write security.protocol=SSL")
    return {key.strip(): value.strip()}

"""Where Kafka is, what its clients are told, and where reading starts; no value is shown."""

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
    """Return the options of a file, and over them those in `key=value`.

    A file has one to a line; empty lines and those that begin with # are left out.

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
        options.update(_option(text, f"--kafka-option, the {number}. of them"))
    return options


def read_starting(text: str) -> str | float:
    """Return earliest, latest, or the seconds since 1970 of a time with its zone.

    >>> read_starting("latest"), read_starting("2026-01-31T12:00:00Z")
    ('latest', 1769860800.0)
    """
    if text in ("earliest", "latest"):
        return text
    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        raise BadInput(
            f"{shown(text)} is no place to start; write earliest, latest "
            "or a time such as 2026-01-31T12:00:00Z"
        ) from error
    if at.utcoffset() is None:
        raise BadInput(f"{text} is nowhere in particular; give it a time zone: {text}Z")
    return at.timestamp()


def _read_clients(
    *,
    kafka_option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="For Kafka's clients; may be repeated. Others can read the command line: "
            "secrets belong in --kafka-options.",
        ),
    ] = None,
    kafka_options: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The same, from a file: key=value on each line."),
    ] = None,
) -> dict[str, str]:
    """Return what Kafka's clients are told."""
    return read_kafka_options(kafka_option or (), kafka_options)


KafkaOptions = Annotated[dict[str, str], Group(_read_clients)]


def _read_spark(
    *,
    bootstrap_servers: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT,…", help="Kafka; without it, a broker of its own."),
    ] = None,
    kafka: KafkaOptions,
    kafka_patience: Annotated[
        str,
        typer.Option(metavar="TIME", help="How long no broker may answer before it gives up."),
    ] = "15m",
    broker_port: Annotated[
        int | None,
        typer.Option(
            min=1, max=65535, help="Where its own broker listens; chosen if not given."
        ),
    ] = None,
    starting_offsets: Annotated[
        str,
        typer.Option(
            metavar="WHERE",
            help="Where sources begin the first time: earliest, latest, 2026-01-31T12:00:00Z.",
        ),
    ] = "earliest",
    batch: Annotated[
        str, typer.Option(metavar="TIME", help="How often what was done is committed.")
    ] = "60s",
) -> SparkSettings:
    """Return how an application runs on Spark."""
    if broker_port is not None and bootstrap_servers is not None:
        raise BadInput(
            f"--broker-port {broker_port} is for a broker of its own, and --bootstrap-servers "
            f"{bootstrap_servers} has others; leave out one of them"
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
        # it may be a secret that lost its name
        raise BadInput(f"{place}: it is not key=value; write security.protocol=SSL")
    return {key.strip(): value.strip()}

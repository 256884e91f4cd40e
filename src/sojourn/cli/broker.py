"""`sojourn broker`: a single-node Kafka broker, while the command runs."""

import json as json_text
import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer
from typer import Option

from sojourn.errors import BadInput
from sojourn.registry import optional


def broker(
    port: Annotated[
        int | None, Option(min=1, max=65535, help="Port to listen on (default: a free one).")
    ] = None,
    host: Annotated[
        str, Option(metavar="ADDRESS", help="Address of this machine to listen on.")
    ] = "127.0.0.1",
    data: Annotated[
        Path | None,
        Option(
            metavar="DIR", help="Folder for topics and records (default: deleted at the end)."
        ),
    ] = None,
    topic: Annotated[
        list[str] | None,
        Option(metavar="NAME:PARTITIONS", help="Create this topic; may be repeated."),
    ] = None,
    ivy_settings: Annotated[
        Path | None,
        Option(
            metavar="FILE", help="Ivy settings, for example to download jars from a mirror."
        ),
    ] = None,
    open_to_all: Annotated[
        bool, Option("--open", help="Accept any client that reaches it, without a password.")
    ] = False,
    json: Annotated[
        bool, Option("--json", help="Print one line of JSON when it is ready.")
    ] = False,
) -> None:
    """Run a single-node Kafka broker until Ctrl-C; by default only this machine can reach it.

    Clients need the generated password, which is in the printed files.
    The first start downloads the jars of Kafka.

    Example: sojourn broker --port 9092 --topic frames:4 --topic results:1
    """
    topics = read_topics(topic or [])
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # end as with Ctrl-C
    try:
        with optional("the broker needs", "spark"):
            from sojourn.spark.driver.jvm.jars import resolve_jars  # noqa: PLC0415
            from sojourn.spark.driver.kafka.broker import Broker  # noqa: PLC0415
        jars = resolve_jars(
            settings=ivy_settings, tell=lambda what: typer.echo(f"{what} …", err=True)
        )
        secured = not open_to_all
        with Broker(data=data, host=host, port=port, jars=jars, secured=secured) as running:
            running.create_topics(topics)
            servers, properties = running.bootstrap_servers, str(running.client_properties)
            settings = str(running.client_settings)
            if json:
                ready = {
                    "bootstrap_servers": servers,
                    "client_properties": properties,
                    "client_settings": settings,
                    "pid": os.getpid(),
                    "topics": topics,
                }
                typer.echo(json_text.dumps(ready))
            else:
                typer.echo("Ctrl-C: stop the broker", err=True)
                typer.echo(f"bootstrap servers: {servers}")
                typer.echo(f"client properties for Kafka's tools: {properties}")
                typer.echo(f"client settings for confluent-kafka: {settings}")
            running.wait()
    except KeyboardInterrupt:
        return


def read_topics(texts: list[str]) -> Mapping[str, int]:
    """Return the number of partitions of each topic, parsed from `frames:4`.

    >>> read_topics(["frames:4", "results:1"])
    {'frames': 4, 'results': 1}
    """
    topics: dict[str, int] = {}
    for text in texts:
        name, _, number = text.rpartition(":")
        if not name or not number.isascii() or not number.isdigit() or len(number) > 9:
            raise BadInput(f"{text!r} is not TOPIC:PARTITIONS; write frames:4")
        if name in topics:
            raise BadInput(f"topic {name} is given twice; write it once")
        topics[name] = int(number)
    return topics

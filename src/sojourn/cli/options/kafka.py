"""Options for Kafka and Spark. Values of client options are never printed."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from typer import Option

from sojourn.cli.options.group import Group
from sojourn.errors import BadFile, BadInput, EngineError
from sojourn.measure.duration import read_duration_s
from sojourn.service.control import ask
from sojourn.service.folders import find
from sojourn.spark.driver.master import LOCAL, Master, read_conf
from sojourn.spark.driver.settings import (
    SparkSettings,
    read_client_options,
    read_folder,
    read_starting,
)


def _read_clients(
    *,
    kafka_option: Annotated[
        list[str] | None,
        Option(
            metavar="KEY=VALUE",
            help="Option of Kafka's clients; may be repeated. Put secrets into "
            "--kafka-options: other users can read the command line.",
        ),
    ] = None,
    kafka_options: Annotated[
        Path | None,
        Option(metavar="FILE", help="Options of Kafka's clients: a file with key=value lines."),
    ] = None,
) -> dict[str, str]:
    return read_client_options(kafka_option or (), kafka_options)


KafkaOptions = Annotated[dict[str, str], Group(_read_clients)]


def _read_spark(
    *,
    bootstrap_servers: Annotated[
        str | None,
        Option(metavar="HOST:PORT,…", help="Kafka brokers (default: starts its own)."),
    ] = None,
    kafka: KafkaOptions,
    kafka_patience: Annotated[
        str,
        Option(
            metavar="TIME",
            help="Time without an answer of any broker after which the application stops.",
        ),
    ] = "15m",
    disk_patience: Annotated[
        str,
        Option(metavar="TIME", help="Time on a full disk after which the application stops."),
    ] = "15m",
    broker_port: Annotated[
        int | None,
        Option(min=1, max=65535, help="Port of its own broker (default: a free one)."),
    ] = None,
    starting_offsets: Annotated[
        str,
        Option(
            metavar="WHERE",
            help="Where sources begin at the first start: earliest, latest, or a time.",
        ),
    ] = "earliest",
    skip_lost: Annotated[
        bool,
        Option(
            "--skip-lost",
            help="Skip records that Kafka deleted before they were read.",
        ),
    ] = False,
    batch: Annotated[str, Option(metavar="TIME", help="Time between two commits.")] = "60s",
    keep_batches: Annotated[
        int,
        Option(
            min=0,
            metavar="NUMBER",
            help="Batches to keep before the last commit: a start resumes from one of them "
            "if Spark lost commits in a power failure.",
        ),
    ] = 3,
    shared_state: Annotated[
        str | None,
        Option(
            metavar="DIR",
            help="Cluster: folder for files that Spark's tasks write, at the same path on "
            "all nodes, such as an NFS mount (default: inside the state folder).",
        ),
    ] = None,
    relay_timeout: Annotated[
        str,
        Option(
            metavar="TIME",
            help="Time without a heartbeat of a Spark task after which its batch runs again.",
        ),
    ] = "10s",
    master: Annotated[
        str,
        Option(
            metavar="URL",
            help="Where Spark runs: local, spark://HOST:PORT, yarn or k8s://URL.",
        ),
    ] = LOCAL,
    conf: Annotated[
        list[str] | None,
        Option(
            metavar="KEY=VALUE",
            help="Setting of Spark; may be repeated. Put secrets into spark-defaults.conf: "
            "other users can read the command line.",
        ),
    ] = None,
    py_files: Annotated[
        str | None,
        Option(
            metavar="FILE,…",
            help="Modules (.py) and packages (.zip, .egg) to ship to the nodes.",
        ),
    ] = None,
    min_nodes: Annotated[
        int, Option(min=1, help="Cluster: minimum number of executors, requested at the start.")
    ] = 1,
    max_nodes: Annotated[
        int | None,
        Option(
            min=1,
            help="Cluster: maximum number of executors; they are requested and released as "
            "processors need them (default: use those that Spark has).",
        ),
    ] = None,
    processors_per_node: Annotated[
        int | None,
        Option(min=1, help="Cluster: processors per executor (default: its cores)."),
    ] = None,
    encrypt: Annotated[
        bool,
        Option("--encrypt", help="Encrypt connections between hosts and executors (TLS)."),
    ] = False,
) -> SparkSettings:
    files = tuple(Path(name.strip()) for name in (py_files or "").split(",") if name.strip())
    on = Master(url=master, spark=read_conf(conf or ()), py_files=files)
    if broker_port is not None and bootstrap_servers is not None:
        raise BadInput(
            f"--broker-port {broker_port} is the port of Sojourn's own broker, and "
            f"--bootstrap-servers {bootstrap_servers} names another; leave out one of them"
        )
    if max_nodes is not None and on.is_local:
        raise BadInput(
            f"--max-nodes {max_nodes} needs a cluster, but --master is {master}; leave "
            "it out, or write --master spark://HOST:PORT"
        )
    if encrypt and on.is_local:
        raise BadInput(
            f"--encrypt needs a cluster, but --master is {master}; leave it out, or write "
            "--master spark://HOST:PORT"
        )
    return SparkSettings(
        servers=bootstrap_servers,
        shared_state=None if shared_state is None else read_folder(shared_state),
        kafka=kafka,
        batch_s=read_duration_s(batch),
        skip_lost=skip_lost,
        kept_batches=keep_batches,
        relay_timeout_s=read_duration_s(relay_timeout),
        starting=read_starting(starting_offsets),
        patience_s=read_duration_s(kafka_patience),
        disk_patience_s=read_duration_s(disk_patience),
        broker_port=broker_port,
        master=master,
        spark=on.spark,
        py_files=files,
        encrypt=encrypt,
        min_nodes=min_nodes,
        max_nodes=max_nodes,
        processors_per_node=processors_per_node,
    )


SparkEngineOptions = Annotated[SparkSettings, Group(_read_spark)]


def kafka_of(
    app: str | None,
    servers: str | None,
    state: Path | None,
    options: str = "--bootstrap-servers HOST:PORT --app NAME",
) -> tuple[str, Mapping[str, str]]:
    """Return the name of an application, and the options for clients of its Kafka.

    Without *servers* and *state* it must run. One that does not run is named by *app* or by its
    folder *state*, and its brokers are *servers*. *options* of the command are for the error if
    none runs.
    """
    if servers is None and state is None:
        return _running(app, options)
    if servers is None or app is None:
        if state is None:
            raise BadInput("no application is named; add --app or --state")
        app = _named_in(state)
    if servers is None:
        raise BadInput(
            f"{state} does not say where the Kafka of {app} is; add --bootstrap-servers, or "
            "start the application if it has its own broker"
        )
    return app, {"bootstrap.servers": servers}


def _running(app: str | None, options: str) -> tuple[str, Mapping[str, str]]:
    try:
        folder, entry = find(app)
    except EngineError as error:
        raise EngineError(
            f"{error}. If it has ended, add {options}; its own broker runs only while the "
            "application does"
        ) from error
    return entry.name, ask(folder, entry, {"ask": "kafka"})["clients"]


def _named_in(state: Path) -> str:
    path = state / "application.json"
    try:
        return str(json.loads(path.read_text(encoding="utf-8"))["application"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadFile(str(path), "does not name its application", "add --app") from error

"""The Kafka brokers of an application, running or not."""

import json
from collections.abc import Mapping
from pathlib import Path

from sojourn.errors import BadFile, BadInput, EngineError
from sojourn.service.control import ask
from sojourn.service.folders import find

__all__ = ["kafka_of"]


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

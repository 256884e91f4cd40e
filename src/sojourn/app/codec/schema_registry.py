"""A Confluent schema registry: Avro schemas by id and by subject."""

from time import monotonic, sleep
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

from sojourn.errors import EngineError, RegistryAway
from sojourn.registry import optional

if TYPE_CHECKING:  # Kafka's client is optional
    from collections.abc import Callable

    from confluent_kafka.schema_registry import SchemaRegistryClient

_ANSWER_S, _RETRIES, _AGAIN_S = 10, 2, 0.5
_NOT_FOUND, _TIMEOUT, _TOO_MANY, _ITS_FAULT = 404, 408, 429, 500

_Answer = TypeVar("_Answer")


def outlast(ask: "Callable[[], _Answer]", tell: "Callable[[str], None]") -> _Answer:
    """Call *ask*, and retry it while the schema registry does not answer.

    After each failed attempt *tell* is called with the reason. Raise `RegistryAway` once its
    `patience_s` has elapsed.
    """
    began_s = monotonic()
    while True:
        try:
            return ask()
        except RegistryAway as away:
            if monotonic() - began_s >= away.patience_s:
                raise
            tell(str(away))
        sleep(_AGAIN_S)


class Registry:
    """A client of the registry at *url*. Methods raise `RegistryAway` if it does not answer.

    Each request has a connection of its own: processors are forked, and must not share one.
    """

    def __init__(self, url: str, patience_s: float = 0.0) -> None:
        self._url, self._patience_s = url, patience_s

    def latest(self, subject: str) -> tuple[int, str] | None:
        """Return id and text of the latest schema of *subject*; None if there is none."""

        def ask(client: "SchemaRegistryClient") -> tuple[int, str]:
            found = client.get_latest_version(subject)
            return _known(found.schema_id), _known(_known(found.schema).schema_str)

        return self._asked(ask)

    def schema(self, number: int) -> str | None:
        """Return the text of the schema with the id *number*; None if there is none."""
        # no retries: the caller retries with `outlast`, which reports the reason
        return self._asked(
            lambda client: _known(client.get_schema(number).schema_str), retries=0
        )

    def register(self, subject: str, text: str) -> int:
        """Register the schema *text* for *subject*, and return its id."""

        def ask(client: "SchemaRegistryClient") -> int:
            from confluent_kafka.schema_registry import Schema  # noqa: PLC0415 - optional

            schema = Schema.from_dict({"schema": text, "schemaType": "AVRO"})
            return client.register_schema(subject, schema)

        return _known(self._asked(ask))

    def _asked(
        self, ask: "Callable[[SchemaRegistryClient], _Answer]", retries: int = _RETRIES
    ) -> _Answer | None:
        with optional("a schema registry needs", "avro"):
            from confluent_kafka.schema_registry import (  # noqa: PLC0415
                SchemaRegistryClient,
                SchemaRegistryError,
            )
        settings = {"url": self._url, "timeout": _ANSWER_S, "max.retries": retries}
        # for messages: without user and password
        host = urlsplit(self._url).netloc.rpartition("@")[2]
        try:
            with SchemaRegistryClient(settings) as client:
                return ask(client)
        except SchemaRegistryError as error:
            status = error.http_status_code
            if status == _NOT_FOUND:
                return None
            if status in (_TIMEOUT, _TOO_MANY) or status >= _ITS_FAULT:
                said = f"status {status}, {error.error_message}"
                raise RegistryAway(host, said, self._patience_s) from error
            raise EngineError(
                f"the schema registry at {host} refused: {error.error_message}"
            ) from error
        except Exception as error:  # errors of the HTTP client, which is an internal detail
            raise RegistryAway(host, str(error), self._patience_s) from error


def _known(value: _Answer | None) -> _Answer:
    """Return *value*, which is optional only in the client's type hints."""
    if value is None:
        raise ValueError("the answer is incomplete")
    return value

"""A Confluent schema registry: Avro schemas by id and by subject."""

from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

from sojourn.errors import EngineError
from sojourn.optional import optional

if TYPE_CHECKING:  # Kafka's client is optional
    from collections.abc import Callable

    from confluent_kafka.schema_registry import SchemaRegistryClient

__all__ = ["Registry"]

_ANSWER_S, _RETRIES = 10, 2
_NOT_FOUND = 404

Answer = TypeVar("Answer")


class Registry:
    """Asks the registry at *url*.

    A connection lasts for one question: processors are forked, and must not share one.
    """

    def __init__(self, url: str) -> None:
        self._url = url

    def latest(self, subject: str) -> tuple[int, str] | None:
        """Return id and text of the latest schema of *subject*; None if there is none."""

        def ask(client: "SchemaRegistryClient") -> tuple[int, str]:
            found = client.get_latest_version(subject)
            return _known(found.schema_id), _known(_known(found.schema).schema_str)

        return self._asked(ask)

    def schema(self, number: int) -> str | None:
        """Return the text of the schema with the id *number*; None if there is none."""
        return self._asked(lambda client: _known(client.get_schema(number).schema_str))

    def register(self, subject: str, text: str) -> int:
        """Return the id of the schema *text*, which *subject* has from now on."""

        def ask(client: "SchemaRegistryClient") -> int:
            from confluent_kafka.schema_registry import Schema  # noqa: PLC0415 - optional

            schema = Schema.from_dict({"schema": text, "schemaType": "AVRO"})
            return client.register_schema(subject, schema)

        return _known(self._asked(ask))

    def _asked(self, ask: "Callable[[SchemaRegistryClient], Answer]") -> Answer | None:
        with optional("a schema registry needs", "avro"):
            from confluent_kafka.schema_registry import (  # noqa: PLC0415
                SchemaRegistryClient,
                SchemaRegistryError,
            )
        settings = {"url": self._url, "timeout": _ANSWER_S, "max.retries": _RETRIES}
        # without a user and a password
        host = f"the schema registry at {urlsplit(self._url).netloc.rpartition('@')[2]}"
        try:
            with SchemaRegistryClient(settings) as client:
                return ask(client)
        except SchemaRegistryError as error:
            if error.http_status_code == _NOT_FOUND:
                return None
            raise EngineError(f"{host} refused: {error.error_message}") from error
        except Exception as error:  # of the HTTP client, which is not ours to name
            raise EngineError(
                f"{host} does not answer: {error}; check registry=, and that it runs"
            ) from error


def _known(value: Answer | None) -> Answer:
    """Return what the client's types say may be None."""
    if value is None:
        raise ValueError("the answer is incomplete")
    return value

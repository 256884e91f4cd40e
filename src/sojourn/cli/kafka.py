"""Options for Kafka's clients and where reading starts, from text; values are never shown."""

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from sojourn.errors import BadFile, BadInput
from sojourn.topology.check import shown

__all__ = ["read_kafka_options", "read_starting"]


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


def _option(text: str, place: str) -> dict[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        # it may be a secret that lost its name
        raise BadInput(f"{place}: it is not key=value; write security.protocol=SSL")
    return {key.strip(): value.strip()}

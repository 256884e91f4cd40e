"""Signatures of input headers, computed by Spark itself (`sojourn.spark.wire.signed_inputs`).

Spark SQL has SHA-256 but no HMAC, so HMAC is composed here as in RFC 2104, from two padded keys
that Python prepares. As literals they would show in query plans. Expressions therefore look
them up in Java: as system properties in the driver's process, which are set after the launch
and so are on no command line, and as environment variables of executors, whose names contain
SECRET so that Spark redacts them.
"""

from collections.abc import Mapping
from typing import Any

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as sql

from sojourn.spark.wire.signed_inputs import SIGNATURE

__all__ = ["executor_environment", "install_key", "signed"]

_BLOCK = 64
_INNER, _OUTER = "SOJOURN_SIGNING_SECRET_INNER", "SOJOURN_SIGNING_SECRET_OUTER"
_PADS = {_INNER: 0x36, _OUTER: 0x5C}
_SYSTEM = "java.lang.System"


def executor_environment(key: bytes) -> dict[str, str]:
    """Return the environment variables of executors: both padded keys, in hexadecimal.

    >>> {name: len(value) for name, value in executor_environment(b"k").items()}
    {'SOJOURN_SIGNING_SECRET_INNER': 128, 'SOJOURN_SIGNING_SECRET_OUTER': 128}
    """
    block = key.ljust(_BLOCK, b"\0")
    return {name: bytes(byte ^ pad for byte in block).hex() for name, pad in _PADS.items()}


def install_key(session: SparkSession, environment: Mapping[str, str]) -> None:
    """Install the padded keys for tasks that run in the session's own Java process."""
    java: Any = session.sparkContext._jvm  # noqa: SLF001
    for name, value in environment.items():
        java.java.lang.System.setProperty(name, value)


def signed(text: Column) -> Column:
    """Return *text* with its signature appended; null if Java has no key."""
    inner = _digest(_key(_INNER), text.cast("binary"))
    outer = _digest(_key(_OUTER), sql.unhex(inner))
    return sql.concat(text, sql.lit(" "), sql.substring(outer, 1, SIGNATURE))


def _digest(key: Column, content: Column) -> Column:
    return sql.sha2(sql.concat(key, content), 256)


def _key(name: str) -> Column:
    known = (
        sql.reflect(sql.lit(_SYSTEM), sql.lit(method), sql.lit(name))
        for method in ("getProperty", "getenv")
    )
    return sql.unhex(sql.coalesce(*known))

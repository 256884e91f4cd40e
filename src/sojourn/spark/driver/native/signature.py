"""Signatures of input headers, computed by Spark itself (`sojourn.spark.wire.signed_inputs`).

Spark SQL has SHA-256 and no HMAC, so that is written out here as RFC 2104 defines it, with the
two padded keys prepared in Python. A literal would show the key in query plans. So Java looks
it up: as a system property in the driver's process, where it is on no command line, and in the
environment of executors, which Spark redacts in what it shows because of the name.
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
    """Return the variables that executors need, in hexadecimal.

    >>> {name: len(value) for name, value in executor_environment(b"k").items()}
    {'SOJOURN_SIGNING_SECRET_INNER': 128, 'SOJOURN_SIGNING_SECRET_OUTER': 128}
    """
    block = key.ljust(_BLOCK, b"\0")
    return {name: bytes(byte ^ pad for byte in block).hex() for name, pad in _PADS.items()}


def install_key(session: SparkSession, environment: Mapping[str, str]) -> None:
    """Let tasks in the process of the session sign."""
    java: Any = session.sparkContext._jvm  # noqa: SLF001
    for name, value in environment.items():
        java.java.lang.System.setProperty(name, value)


def signed(text: Column) -> Column:
    """Return *text* and its signature; null where Java has no key."""
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

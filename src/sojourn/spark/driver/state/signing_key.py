"""The key with which an application signs input offsets in Kafka headers.

With the key, an attacker could make readers of the application drop records. It is kept with
the state and lives as long, because records in topics carry its signatures.
"""

import secrets
from pathlib import Path

from sojourn.errors import BadFile
from sojourn.files.durable_file import write_durably

__all__ = ["signing_key"]

_FILE = "signing-key"
_BYTES = 32


def signing_key(folder: Path, *, resumes: bool) -> bytes:
    """Return the key of the state in *folder*: a new one unless the application *resumes*.

    Raise `BadFile` if a state that is resumed has none.
    """
    path = folder / _FILE
    if not resumes:
        key = secrets.token_bytes(_BYTES)
        write_durably(path, key.hex().encode())
        return key
    try:
        key = bytes.fromhex(path.read_text(encoding="ascii"))
    except (OSError, ValueError) as error:
        raise _unusable(path, str(error)) from error
    if len(key) != _BYTES:
        raise _unusable(path, f"it has {len(key)} bytes instead of {_BYTES}")
    return key


def _unusable(path: Path, problem: str) -> BadFile:
    way_out = "restore it from a backup of the state, or start without this state (--fresh)"
    return BadFile(str(path), f"cannot be used: {problem}", way_out)

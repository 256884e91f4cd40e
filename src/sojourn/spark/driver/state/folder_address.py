"""The address of a state folder: a path, or a `file:` URL."""

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from sojourn.errors import BadInput
from sojourn.text import shown

__all__ = ["check_is_path", "hadoop_address", "read_folder"]

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")


def read_folder(text: str) -> Path:
    """Return the folder that *text* names, a path or `file:///PATH`.

    Raise `BadInput` of any other address.

    >>> read_folder("file:///shared/my%20orders").as_posix(), read_folder("orders").as_posix()
    ('/shared/my orders', 'orders')
    >>> read_folder("s3a://bucket/orders")
    Traceback (most recent call last):
    ...
    sojourn.errors.BadInput: 's3a://bucket/orders' is not on a file system that supports ...
    """
    if not text.lower().startswith("file:"):
        path = Path(text)
        check_is_path(path, text)
        return path
    address = urlsplit(text)
    if address.netloc not in ("", "localhost") or not address.path.startswith("/"):
        raise BadInput(f"{shown(text)} is not the address of a folder; write file:///PATH")
    return Path(unquote(address.path))


def check_is_path(folder: Path, given: str | None = None) -> None:
    """Raise `BadInput` if *folder* is a URL of other storage; it shows the text *given*."""
    if _SCHEME.match(str(folder)):
        raise BadInput(
            f"{shown(given or str(folder))} is not on a file system that supports appending "
            "and locks; write the path of a folder on a disk"
        )


def hadoop_address(folder: Path) -> str:
    """Return *folder* as a URL for Spark, which may take a plain path for one of HDFS.

    It is not percent-encoded, because Hadoop does not decode it.

    >>> hadoop_address(Path("/shared/sink of words"))
    'file:///shared/sink of words'
    """
    return f"file://{folder.absolute()}"

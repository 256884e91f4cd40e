"""Spark's own files of a checkpoint: the end offsets of each batch, and its commit.

Spark renames them into place without an fsync. After a power failure the last ones may be
missing, empty or torn, and Spark fails if it cannot read one.
"""

import json
from collections.abc import Mapping
from pathlib import Path

from sojourn.files.durable_file import write_durably

Positions = Mapping[str, Mapping[int, int]]
"""Offsets, by topic and partition."""

_COMMITS, _OFFSETS = "commits", "offsets"
_NO_OFFSET = "-"  # of a source that has none yet


def batch_numbers(folder: Path) -> list[int]:
    """Return the numbers of batches with a file in *folder*, sorted."""
    if not folder.is_dir():
        return []
    return sorted(int(path.name) for path in folder.iterdir() if path.name.isdigit())


def drop_torn_batches(checkpoint: Path) -> list[int]:
    """Drop the last commits if their files are torn; return their batches.

    The query then resumes after the last complete batch, as if they had not been committed.
    """
    commits, offsets = checkpoint / _COMMITS, checkpoint / _OFFSETS
    dropped: list[int] = []
    committed = batch_numbers(commits)
    while committed and not (
        _is_whole(commits / str(committed[-1])) and _is_whole(offsets / str(committed[-1]))
    ):
        dropped.append(committed.pop())
        _remove(commits, dropped[-1])
    last = committed[-1] if committed else -1
    for batch in batch_numbers(offsets):
        # Spark would resume at the last of these files, whichever batch is committed
        if batch > last + 1 or (batch == last + 1 and not _is_whole(offsets / str(batch))):
            _remove(offsets, batch)
    return dropped


def raise_offsets(checkpoint: Path, least: Positions) -> None:
    """Raise the offsets from which a query resumes to *least* or more."""
    offsets = checkpoint / _OFFSETS
    last = max(batch_numbers(checkpoint / _COMMITS), default=0)
    for batch in batch_numbers(offsets):
        if batch >= last:  # the end of the last batch, or the planned end of the next one
            path = offsets / str(batch)
            version, kept, *sources = path.read_text(encoding="utf-8").splitlines()
            lines = [version, kept, *(raised(source, least) for source in sources)]
            (offsets / f".{batch}.crc").unlink(missing_ok=True)
            write_durably(path, "\n".join(lines).encode())


def raised(text: str, least: Positions) -> str:
    """Return the offsets of a source in Spark's JSON, each raised to *least* or more.

    >>> raised('{"orders":{"0":7,"1":9}}', {"orders": {0: 8, 1: 8}})
    '{"orders":{"0":8,"1":9}}'
    """
    if text == _NO_OFFSET:
        return text
    found = {
        topic: {
            partition: max(offset, least.get(topic, {}).get(int(partition), offset))
            for partition, offset in partitions.items()
        }
        for topic, partitions in json.loads(text).items()
    }
    return json.dumps(found, separators=(",", ":"))


def _is_whole(path: Path) -> bool:
    """Return whether a file is complete: a version, followed by lines of JSON."""
    try:
        version, *lines = path.read_text(encoding="utf-8").splitlines()
        for line in lines:
            if line != _NO_OFFSET:
                json.loads(line)
    except (OSError, ValueError):
        return False
    return version.startswith("v") and bool(lines)


def _remove(folder: Path, batch: int) -> None:
    (folder / str(batch)).unlink(missing_ok=True)
    (folder / f".{batch}.crc").unlink(missing_ok=True)

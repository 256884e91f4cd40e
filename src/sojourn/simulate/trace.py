"""Rates from a file: `timestamp,rate` in CSV, plain or gzipped."""

import csv
import gzip
import zlib
from datetime import UTC, datetime
from pathlib import Path

from sojourn.check import shown
from sojourn.errors import BadFile, BadWorkload
from sojourn.simulate.workload import Rates

__all__ = ["read_rates"]


def read_rates(path: Path, *, times: float = 1.0, faster: float = 1.0) -> Rates:
    """Return the rates in the file, *times* as high and passing *faster*.

    The first column is a time (seconds, or a date with a time), the second a rate per second
    that holds from then on. The first time becomes 0.

    Raise `BadFile` if it cannot be read, `BadWorkload` if it holds no rates.
    """
    if not (0 < times < float("inf") and 0 < faster < float("inf")):
        raise BadWorkload(f"rates {times} times as high, {faster} as fast, cannot be")
    rows = _rows(path)
    points = [_point(path, line, row) for line, row in rows]
    if not points:
        raise BadWorkload(f"{path} has no rows; write lines of timestamp,rate")
    start_s = points[0][0]
    try:
        return Rates.steps(
            *(((at_s - start_s) / faster, per_s * times) for at_s, per_s in points)
        )
    except BadWorkload as error:
        raise BadWorkload(f"{path}: {error}") from error


def _rows(path: Path) -> list[tuple[int, list[str]]]:
    opened = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rt", encoding="utf-8", newline="") as lines:
            rows = [(number, row) for number, row in enumerate(csv.reader(lines), 1) if row]
    except OSError as error:
        problem = error.strerror or str(error)
        raise BadFile(str(path), f"cannot be read: {problem}", "check the path") from error
    except (ValueError, EOFError, csv.Error, zlib.error) as error:
        raise BadFile(str(path), f"is not CSV: {error}", "save it as UTF-8 CSV") from error
    return rows[1:] if rows and not _is_time(rows[0][1][0]) else rows  # the first names columns


def _point(path: Path, line: int, row: list[str]) -> tuple[float, float]:
    try:
        return _seconds(row[0]), float(row[1])
    except (ValueError, IndexError, OverflowError) as error:
        problem = f"{shown(','.join(row))} is not a time and a rate"
        raise BadWorkload(f"{path}:{line}: {problem}; write timestamp,rate") from error


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        at = datetime.fromisoformat(text)
    # without a zone it is not that of the machine, whose clock changes twice a year
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


def _is_time(text: str) -> bool:
    try:
        _seconds(text)
    except ValueError:
        return False
    return True

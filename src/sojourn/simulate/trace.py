"""Traces: rates over time from a CSV file, plain or gzipped."""

import csv
import gzip
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from sojourn.errors import BadFile, BadWorkload
from sojourn.simulate.workload import Rates
from sojourn.text import shown

# Known names of columns, with the unit of times in seconds.
_TIMES_S = {
    **dict.fromkeys(
        ("timestamp", "time", "datetime", "date", "seconds", "at_s", "at", "time_s", "epoch",
         "ts", "t"),
        1.0,
    ),
    **dict.fromkeys(("timestamp_ms", "time_ms", "epoch_ms"), 1e-3),
}  # fmt: skip
_RATES = (
    "rate", "per_s", "value", "rate_per_s", "per_second", "records_per_s", "arrivals_per_s",
    "events_per_s", "requests_per_s", "rps", "qps",
)  # fmt: skip
_WAY_OUT = "name the columns timestamp and rate, or leave the header out"


@dataclass(frozen=True, slots=True)
class _Columns:
    """The positions of the columns, and the unit of numeric times in seconds."""

    time: int = 0
    rate: int = 1
    unit_s: float = 1.0


def read_rates(path: Path, *, times: float = 1.0, faster: float = 1.0) -> Rates:
    """Read the rates in a file, multiplied by *times*, and accelerated by *faster*.

    Columns are found by their names, in any order: a time (seconds, or a date with a time), and
    a rate per second that holds from that time on. Without a header they are the first two
    columns. The first time becomes 0.

    Raise `BadFile` if the file cannot be read, `BadWorkload` if it is not a list of rates.
    """
    if not (0 < times < float("inf") and 0 < faster < float("inf")):
        raise BadWorkload(
            f"the factor on rates is {times}, that on time {faster}; write more than 0"
        )
    rows, columns = _rows(path), _Columns()
    if rows and not _is_time(rows[0][1][0]):
        columns = _named(path, rows.pop(0)[1])
    points = [_point(path, line, row, columns) for line, row in rows]
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
        with opened(path, "rt", encoding="utf-8-sig", newline="") as lines:
            return [(number, row) for number, row in enumerate(csv.reader(lines), 1) if row]
    except OSError as error:
        problem = error.strerror or str(error)
        raise BadFile(str(path), f"cannot be read: {problem}", "check the path") from error
    except (ValueError, EOFError, csv.Error, zlib.error) as error:
        raise BadFile(str(path), f"is not CSV: {error}", "save it as UTF-8 CSV") from error


def _named(path: Path, header: Sequence[str]) -> _Columns:
    """Return the positions of the known columns in a header; others are ignored."""
    names = [name.strip().lower() for name in header]
    time = _only(path, header, "time", [i for i, name in enumerate(names) if name in _TIMES_S])
    rate = _only(path, header, "rate", [i for i, name in enumerate(names) if name in _RATES])
    return _Columns(time, rate, _TIMES_S[names[time]])


def _only(path: Path, header: Sequence[str], what: str, found: Sequence[int]) -> int:
    if len(found) == 1:
        return found[0]
    said = f"{path}: in the header {shown(','.join(header))}"
    if found:
        both = " and ".join(header[i].strip() for i in found)
        raise BadWorkload(f"{said} {both} are {what}s; keep one of them")
    known = ", ".join(_TIMES_S if what == "time" else _RATES)
    raise BadWorkload(f"{said} no column is a {what} ({known}); {_WAY_OUT}")


def _point(path: Path, line: int, row: list[str], columns: _Columns) -> tuple[float, float]:
    try:
        return _seconds(row[columns.time], columns.unit_s), float(row[columns.rate])
    except (ValueError, IndexError, OverflowError) as error:
        problem = f"{shown(','.join(row))} is not a time and a rate"
        raise BadWorkload(f"{path}:{line}: {problem}; write timestamp,rate") from error


def _seconds(text: str, unit_s: float = 1.0) -> float:
    try:
        return float(text) * unit_s
    except ValueError:
        at = datetime.fromisoformat(text.strip())
    # times without a zone are UTC: local time may have daylight saving changes
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


def _is_time(text: str) -> bool:
    try:
        _seconds(text)
    except ValueError:
        return False
    return True

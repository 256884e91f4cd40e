"""Position reports in the order of time: of vehicles in San Francisco, or made up.

Positions are in millionths of a degree, times in whole seconds. The reports of the file are
repeated without end: the trips of another round are other trips, on a later day.
"""

import heapq
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from random import Random
from typing import TypeAlias

from sojourn_papers.apps.data import data_file

POSITIONS = "gps/uber_sf_gps_510k.parquet"

Report: TypeAlias = tuple[str, int, int, int]
"""Trip, time, latitude and longitude."""

_DAY_S = 86_400
_ROWS = 1000
_VEHICLES, _STREETS = 40, 4
_FIRST_S = 1_168_300_800
_SOUTH_E6, _WEST_E6 = 37_760_000, -122_430_000
_STREET_E6 = 2_700  # about 300 m from one street to the next
_LENGTH_CM = 400_000
_QUEUE_CM = (150_000, 190_000)
_FREE_CM_S, _QUEUED_CM_S = (900, 1_500), (80, 250)
_GAPS_S = (12, 28)
_CM_OF_1E6 = 8.76
_TWICE = 0.005


def samples(seed: int) -> Iterator[Report]:
    """Yield reports without end."""
    path = data_file(POSITIONS)
    return made_up(seed) if path is None else _of_file(path, seed)


def made_up(seed: int) -> Iterator[Report]:
    """Yield reports of vehicles that drive along streets and queue at the same place.

    Some come twice, as in the file.
    """
    drawn = Random(seed)  # noqa: S311 - samples
    trips = count()
    # when a vehicle reports next, its number, its trip, and how far it is by then
    due = [(_FIRST_S + drawn.randint(*_GAPS_S), v, next(trips), 0) for v in range(_VEHICLES)]
    heapq.heapify(due)
    while True:
        at_s, vehicle, trip, driven_cm = heapq.heappop(due)
        latitude = _SOUTH_E6 + _STREET_E6 * (vehicle % _STREETS)
        report = (str(trip), at_s, latitude, _WEST_E6 + int(driven_cm / _CM_OF_1E6))
        yield report
        if drawn.random() < _TWICE:
            yield report
        queued = _QUEUE_CM[0] <= driven_cm < _QUEUE_CM[1]
        gap_s = drawn.randint(*_GAPS_S)
        driven_cm += gap_s * drawn.randint(*(_QUEUED_CM_S if queued else _FREE_CM_S))
        if driven_cm > _LENGTH_CM:
            trip, driven_cm = next(trips), 0
        heapq.heappush(due, (at_s + gap_s, vehicle, trip, driven_cm))


def _of_file(path: Path, seed: int) -> Iterator[Report]:
    from pyarrow import parquet  # noqa: PLC0415 - optional

    table = parquet.read_table(path)
    first_s, last_s = (table["ts"][place].as_py().timestamp() for place in (0, -1))
    later_s = _DAY_S * (int(last_s - first_s) // _DAY_S + 1)
    place, number = Random(seed).randrange(len(table)), 0  # noqa: S311 - where to begin
    while True:
        for batch in table.slice(place).to_batches(max_chunksize=_ROWS):
            for row in batch.to_pylist():
                yield (
                    f"{row['trip_id']}-{number}",
                    int(row["ts"].timestamp()) + number * later_s,
                    round(1e6 * row["lat"]),
                    round(1e6 * row["lon"]),
                )
        place, number = 0, number + 1

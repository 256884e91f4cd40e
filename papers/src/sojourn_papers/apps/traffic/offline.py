"""The rows of all windows, worked out at once from all reports."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from math import sqrt
from typing import NamedTuple

from sojourn_papers.apps.catalogue import Record, States, Tables
from sojourn_papers.apps.traffic.panes import FREE_CM_S, LEAST_ENTRIES, SLOW_CM_S
from sojourn_papers.apps.traffic.plane import FASTEST_CM_S, LONGEST_GAP_S, Plane
from sojourn_papers.apps.traffic.settings import Settings


class _Speed(NamedTuple):
    cell: tuple[int, int]
    at_s: int
    speed: int
    entry: int | None


def answers(_source: str, _record: Record) -> Iterator[tuple[str, Record]]:
    """Yield nothing: a row depends on all reports of its window."""
    return iter(())


def rows(records: Iterable[tuple[str, Record]]) -> Tables:
    """Return a row for each cell and window with reports; no report is late."""
    settings = Settings.of_environment()
    windows: defaultdict[tuple[int, int, int], list[_Speed]] = defaultdict(list)
    for made in _speeds(_trips(records), settings):
        start_s = made.at_s - made.at_s % settings.slide_s
        while start_s > made.at_s - settings.window_s:
            windows[(*made.cell, start_s)].append(made)
            start_s -= settings.slide_s
    return {
        "rows": frozenset((*key, *_row(reports)) for key, reports in windows.items()),
        "late": frozenset(),
    }


def told(results: Mapping[str, Sequence[Record]]) -> Tables:
    """Return the last row of each cell and window: that with the most reports."""
    last: dict[Record, Record] = {}
    for row in results["rows"]:
        key, values = row[:3], row[3:]
        last[key] = max(values, last.get(key, values))
    return {
        "rows": frozenset((*key, *values) for key, values in last.items()),
        "late": frozenset(results["late"]),
    }


def states(records: Iterable[tuple[str, Record]]) -> States:
    """Return what is kept of each trip and cell in the end, if no report was late."""
    settings = Settings.of_environment()
    trips = _trips(records)
    by_cell: defaultdict[tuple[int, int], list[_Speed]] = defaultdict(list)
    for made in _speeds(trips, settings):
        by_cell[made.cell].append(made)
    return {
        "speeds": {(trip,): _last(reports, settings) for trip, reports in trips.items()},
        "cells": {cell: {"panes": _panes(some, settings)} for cell, some in by_cell.items()},
    }


def _trips(records: Iterable[tuple[str, Record]]) -> Mapping[str, list[Record]]:
    """Return the reports of each trip, without those that are not later than one before."""
    trips: dict[str, list[Record]] = {}
    for _, (trip, *report) in records:
        before = trips.setdefault(trip, [])
        if not before or report[0] > before[-1][0]:
            before.append(tuple(report))
    return trips


def _speed(before: Record, after: Record, plane: Plane) -> int | None:
    (x0, y0), (x1, y1) = (plane.place(*report[1:]) for report in (before, after))
    lasts_s = after[0] - before[0]
    speed = int(sqrt((x1 - x0) ** 2 + (y1 - y0) ** 2)) // lasts_s
    return speed if lasts_s <= LONGEST_GAP_S and speed <= FASTEST_CM_S else None


def _speeds(trips: Mapping[str, list[Record]], settings: Settings) -> Iterator[_Speed]:
    plane = Plane.of_settings(settings)
    for reports in trips.values():
        found = [None, *(_speed(*pair, plane) for pair in pairwise(reports))]
        where = [plane.cell(plane.place(*report[1:])) for report in reports]
        for i, speed in enumerate(found):
            if speed is not None:
                entry = found[i - 1] if where[i] != where[i - 1] else None
                yield _Speed(where[i], reports[i][0], speed, entry)


def _last(reports: Sequence[Record], settings: Settings) -> Mapping[str, object]:
    plane = Plane.of_settings(settings)
    x_cm, y_cm = plane.place(*reports[-1][1:])
    speed = _speed(reports[-2], reports[-1], plane) if len(reports) > 1 else None
    return {"at_s": reports[-1][0], "x_cm": x_cm, "y_cm": y_cm, "speed": speed}


def _row(reports: Sequence[_Speed]) -> Record:
    speeds = [each.speed for each in reports]
    entries = [each.entry for each in reports if each.entry is not None]
    is_queue_end = (
        len(entries) >= LEAST_ENTRIES
        and sum(speeds) / len(speeds) <= SLOW_CM_S
        and sum(entries) / len(entries) >= FREE_CM_S
    )
    return len(speeds), sum(speeds) // len(speeds), max(speeds), is_queue_end


def _panes(reports: Sequence[_Speed], settings: Settings) -> list[Record]:
    """Return those from the first window on that a report in time may still be in."""
    slides: defaultdict[int, list[_Speed]] = defaultdict(list)
    for each in reports:
        slides[each.at_s // settings.slide_s].append(each)
    oldest = max(slides) - (settings.window_s + settings.lateness_s) // settings.slide_s + 1
    kept = []
    for number in sorted(slides):
        if number >= oldest:
            speeds = [each.speed for each in slides[number]]
            entries = [each.entry for each in slides[number] if each.entry is not None]
            counted = len(speeds), sum(speeds), max(speeds), len(entries), sum(entries)
            kept.append((number, *counted))
    return kept

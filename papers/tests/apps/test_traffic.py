import datetime as dt
from collections import Counter, deque
from itertools import islice

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from sojourn.app.output import output_of
from sojourn.errors import BadInput
from sojourn.spark.processor.state_codec import StateCodec
from sojourn_papers.apps.catalogue import entry
from sojourn_papers.apps.data import DATA
from sojourn_papers.apps.traffic import app, cells, offline, speeds
from sojourn_papers.apps.traffic.panes import FREE_CM_S, SLOW_CM_S, Pane
from sojourn_papers.apps.traffic.plane import FASTEST_CM_S, LONGEST_GAP_S, Plane
from sojourn_papers.apps.traffic.samples import POSITIONS, made_up
from sojourn_papers.apps.traffic.settings import Settings

SMALL = Settings(cell_m=100, window_s=60, slide_s=20, lateness_s=40)
DAYS = 10**9
ALL_IN_TIME = Settings(cell_m=100, window_s=60, slide_s=20, lateness_s=20 * DAYS)
# about 11 m a step, so that vehicles cross cells, stand, and jump too far
STEPS = st.lists(st.tuples(st.integers(1, 150), st.integers(-60, 60)), max_size=12)


class Interleaved:
    """Runs the functions; *draw* picks whose record is next, of those that wait.

    Records of a trip keep their order, as they do in a partition of a topic. Without *draw*
    they come in the order that they are given in.
    """

    def __init__(self, settings, draw=None):
        self._settings, self._draw = settings, draw
        self._plane = Plane.of_settings(settings)
        self._states = {"speeds": {}, "cells": {}}
        self._codecs = {o.name: StateCodec(o.name, o.state) for o in (speeds, cells)}
        self._checked = {o.name: output_of(o) for o in (speeds, cells)}
        self.results, self.largest = {"rows": [], "late": []}, 0

    def run(self, records):
        if self._draw is None:
            for record in records:
                for made in self._served(speeds, self._plane, record[:1], record):
                    self._count(made)
        else:
            self._run_drawn(records)
        return self

    def _run_drawn(self, records):
        trips = {}
        for record in records:
            trips.setdefault(record[0], deque()).append(record)
        trips, waiting = list(trips.values()), []
        while trips or waiting:
            place = self._draw(len(trips) + len(waiting))
            if place < len(trips):
                record = trips[place].popleft()
                if not trips[place]:
                    del trips[place]
                waiting += self._served(speeds, self._plane, record[:1], record)
            else:
                self._count(waiting.pop(place - len(trips)))

    def _count(self, record):
        for stream, row in self._served(cells, self._settings, record[:2], record):
            self.results[stream].append(row)

    def _served(self, operator, set_up, key, record):
        codec, states = self._codecs[operator.name], self._states[operator.name]
        state = codec.decode(states.pop(key, b""))
        made = [self._checked[operator.name](each) for each in operator(set_up, state, *record)]
        if kept := codec.encode(state):
            states[key] = kept
        self.largest = max(self.largest, len(state.get("panes", ())))
        return made if operator is cells else [row for _, row in made]

    def states(self):
        """Return what is kept in the end, by operator and key."""
        return {
            name: {key: codec.decode(self._states[name][key]) for key in self._states[name]}
            for name, codec in self._codecs.items()
        }


@pytest.fixture
def set_to(monkeypatch):
    """Return a function that sets the variables of settings."""

    def to(settings):
        for name in ("cell_m", "window_s", "slide_s", "lateness_s", "latitude"):
            monkeypatch.setenv(f"SOJOURN_TRAFFIC_{name.upper()}", str(getattr(settings, name)))
        return settings

    return to


def driven(trip, steps):
    """Return the reports of a trip that begins at the same place as all others."""
    at_s, north = 1_000_000, 0
    for gap_s, step in steps:
        at_s, north = at_s + gap_s, north + 100 * step
        yield trip, at_s, 37_760_000 + north, -122_430_000


def sourced(records):
    return [("positions", record) for record in records]


def move(seconds, *, metres, trip="t", state=None, start=(37_760_000, -122_430_000)):
    """Return what is yielded after a report so many seconds and metres to the north later."""
    plane, state = Plane.of_settings(SMALL), state or {}
    state = dict.fromkeys(("at_s", "x_cm", "y_cm", "speed")) | state
    lat, lon = start
    list(speeds(plane, state, trip, 1000, lat, lon))
    north = round(metres / 0.1112)
    return list(speeds(plane, state, trip, 1000 + seconds, lat + north, lon)), state


@given(trips=st.lists(STEPS, max_size=6), order=st.randoms())
def test_however_trips_interleave_the_last_rows_are_those_worked_out_offline(trips, order):
    records = [r for n, steps in enumerate(trips) for r in driven(str(n), steps)]
    run = Interleaved(ALL_IN_TIME, order.randrange).run(records)
    with pytest.MonkeyPatch.context() as patch:
        for name in ("cell_m", "window_s", "slide_s", "lateness_s"):
            patch.setenv(f"SOJOURN_TRAFFIC_{name.upper()}", str(getattr(ALL_IN_TIME, name)))
        due = offline.rows(sourced(records))
        assert offline.told(run.results) == due
        assert run.states() == offline.states(sourced(records))


def test_rows_are_those_of_the_definition():
    """Worked out by hand: two vehicles, 100 m cells, windows of 60 s every 20 s."""
    run = Interleaved(SMALL)
    run.run([("a", 1000, 0, 0), ("a", 1010, 900, 0), ("b", 1015, 0, 0), ("b", 1025, 300, 0)])
    # 900 millionths are 100.08 m: 1000 cm/s into the next cell. 300 are 33.36 m: 333 cm/s.
    assert offline.told(run.results)["rows"] == {
        (0, 1, 960, 1, 1000, 1000, False),
        (0, 1, 980, 1, 1000, 1000, False),
        (0, 1, 1000, 1, 1000, 1000, False),
        (0, 0, 980, 1, 333, 333, False),
        (0, 0, 1000, 1, 333, 333, False),
        (0, 0, 1020, 1, 333, 333, False),
    }


@pytest.mark.usefixtures("no_data")
def test_made_up_reports_have_ends_of_queues_and_come_twice(set_to):
    set_to(Settings())
    records = list(islice(made_up(1), 3000))
    due = offline.rows(sourced(records))
    run = Interleaved(Settings()).run(records)
    assert offline.told(run.results) == due
    assert 0 < sum(row[-1] for row in due["rows"]) < len(due["rows"]) / 4
    assert len(set(records)) < len(records)
    assert [r[1] for r in records] == sorted(r[1] for r in records)
    assert records == list(islice(made_up(1), 3000)) != list(islice(made_up(2), 3000))


@pytest.mark.usefixtures("real_data")
def test_real_reports(set_to):
    """The hints of the application are what is measured on them."""
    set_to(Settings())
    records = list(islice(app.samples["positions"](3), 5000))
    due = offline.rows(sourced(records))
    run = Interleaved(Settings()).run(records)
    assert offline.told(run.results) == due
    assert any(row[-1] for row in due["rows"])
    rows = Counter(row[:3] for row in run.results["rows"])
    assert rows.total() / 3 / len(records) == pytest.approx(0.96, abs=0.03)


def test_a_file_that_is_repeated_has_later_times_and_other_trips(tmp_path, monkeypatch):
    """What is sent a second time would be late otherwise."""
    times = [dt.datetime(2007, 1, day, tzinfo=dt.UTC) for day in (1, 1, 3)]
    table = {"trip_id": [7, 7, 8], "ts": times, "lat": [37.7758] * 3, "lon": [-122.4464] * 3}
    (tmp_path / "gps").mkdir()
    parquet.write_table(pa.table(table), tmp_path / POSITIONS)
    monkeypatch.setenv(DATA, str(tmp_path))
    reports = list(islice(app.samples["positions"](3), 9))
    rounds = [int(trip.rpartition("-")[2]) for trip, *_ in reports]
    assert rounds == sorted(rounds)
    assert {0, 1, 2} <= set(rounds)
    assert [at_s for _, at_s, *_ in reports] == sorted(at_s for _, at_s, *_ in reports)
    spans = [[r[1] for r, n in zip(reports, rounds, strict=True) if n == i] for i in (0, 1)]
    assert max(spans[0]) < min(spans[1])
    assert {(lat, lon) for _, _, lat, lon in reports} == {(37_775_800, -122_446_400)}


def test_a_state_has_no_more_panes_than_a_window_and_what_may_be_late():
    records = [("t", 1000 + 10 * n, 100 * (n % 2), 0) for n in range(500)]
    run = Interleaved(SMALL).run(records)
    assert run.largest == 3 + 2
    assert len(run.states()["cells"]) == 1


@pytest.mark.parametrize(("older_s", "in_time"), [(0, True), (40, True), (60, False)])
def test_a_report_that_is_older_than_allowed_is_late_and_changes_nothing(older_s, in_time):
    state, at_s = {"panes": []}, 1000
    list(cells(SMALL, state, 0, 0, at_s, 500, None))
    before = [*state["panes"]]
    made = list(cells(SMALL, state, 0, 0, at_s - older_s, 300, None))
    if in_time:
        assert [stream for stream, _ in made] == ["rows"] * 3
        assert sum(pane[1] for pane in state["panes"]) == 2
    else:
        assert made == [("late", (0, 0, at_s - older_s, 300))]
        assert state["panes"] == before


def test_late_reports_are_told_by_the_check():
    results = {"rows": [], "late": [(0, 0, 5, 300)]}
    assert offline.told(results)["late"] != offline.rows([])["late"]


def test_the_row_with_the_most_reports_counts_in_whatever_order_rows_come():
    few, many = (0, 0, 60, 1, 900, 900, False), (0, 0, 60, 2, 700, 900, False)
    for rows in ([few, many], [many, few]):
        assert offline.told({"rows": rows, "late": []})["rows"] == {many}


def test_no_speed_without_a_report_before():
    plane, state = Plane.of_settings(SMALL), dict.fromkeys(("at_s", "x_cm", "y_cm", "speed"))
    assert not list(speeds(plane, state, "t", 1000, 0, 0))
    assert state == {"at_s": 1000, "x_cm": 0, "y_cm": 0, "speed": None}


def test_a_speed_is_rounded_down_and_has_the_cell_and_the_time_of_the_later_report():
    ((x, y, at_s, speed, came_from),), state = move(10, metres=99.9)
    assert (at_s, speed, came_from) == (1010, 998, None)
    assert (x, y) == (-107_249, 41_990)
    assert state["speed"] == 998


def test_a_gap_and_a_jump_have_no_speed_and_the_next_report_starts_from_them():
    for seconds, metres in ((LONGEST_GAP_S + 1, 10), (1, FASTEST_CM_S / 100 + 1)):
        made, state = move(seconds, metres=metres)
        assert made == []
        assert state["at_s"] == 1000 + seconds
        assert state["speed"] is None
    made, _ = move(LONGEST_GAP_S, metres=10)
    assert [row[3] for row in made] == [8]


@pytest.mark.parametrize("at_s", [1010, 1005])
def test_a_report_that_is_not_later_than_the_last_is_left_out(at_s):
    _, state = move(10, metres=50)
    before = dict(state)
    assert not list(speeds(Plane.of_settings(SMALL), state, "t", at_s, 37_760_000, 0))
    assert state == before


def test_the_first_report_in_a_cell_has_the_speed_before():
    """It is that in the cell that the vehicle came from."""
    plane, state = Plane.of_settings(SMALL), dict.fromkeys(("at_s", "x_cm", "y_cm", "speed"))
    made = [
        row
        for n, lat in enumerate((0, 400, 1_000, 1_100))
        for row in speeds(plane, state, "t", 1000 + 10 * n, lat, 0)
    ]
    assert [(y, speed, came_from) for _, y, _, speed, came_from in made] == [
        (0, 444, None),
        (1, 667, 444),
        (1, 111, None),
    ]


def test_a_queue_ends_where_vehicles_come_fast_and_are_slow():
    end = Pane(0, 4, 4 * SLOW_CM_S, SLOW_CM_S, 2, 2 * FREE_CM_S)
    assert end.is_queue_end
    assert not end._replace(speed_sum=end.speed_sum + 1).is_queue_end
    assert not end._replace(entry_sum=end.entry_sum - 1).is_queue_end
    assert not end._replace(entries=1).is_queue_end
    assert not end._replace(entries=0, entry_sum=0).is_queue_end


@pytest.mark.parametrize("place", [(90_000_001, 0), (0, -180_000_001)])
def test_a_position_that_is_not_on_earth_fails(place):
    assert speeds.on_error.then == "dead_letter"
    with pytest.raises(ValueError, match="not millionths of degrees on earth"):
        Plane.of_settings(SMALL).place(*place)


@pytest.mark.parametrize(
    ("variable", "problem"),
    [
        ("WINDOW_S=100", "window_s=100 is not a multiple of slide_s=300"),
        ("LATENESS_S=100", "lateness_s=100 is not a multiple of slide_s=300"),
        ("LATITUDE=81", "latitude=81"),
        ("CELL_M=0", "SOJOURN_TRAFFIC_CELL_M=0 is not a number from 1 on"),
        ("SLIDE_S=x", "SOJOURN_TRAFFIC_SLIDE_S=x is not a number"),
    ],
)
def test_settings_that_are_not_possible_are_named(monkeypatch, variable, problem):
    name, _, value = variable.partition("=")
    monkeypatch.setenv(f"SOJOURN_TRAFFIC_{name}", value)
    with pytest.raises(BadInput, match=problem):
        Settings.of_environment()


def test_latitude_and_lateness_may_be_0(monkeypatch):
    monkeypatch.setenv("SOJOURN_TRAFFIC_LATITUDE", "0")
    monkeypatch.setenv("SOJOURN_TRAFFIC_LATENESS_S", "0")
    assert Plane.of_settings(Settings.of_environment()).east == 1112
    assert Settings.of_environment().late_slides == 0


def test_the_catalogue_has_it():
    assert entry("traffic").app is app
    rates = app.topology({"positions": 100}).rates
    assert rates == {"speeds": pytest.approx(100), "cells": pytest.approx(96)}

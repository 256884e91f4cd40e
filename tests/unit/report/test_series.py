"""The course of a run, of which every chart is drawn."""

from dataclasses import replace
from math import isnan, nan

import pytest

import sojourn as sj
from sojourn.decide.plan import Expected, Plan
from sojourn.engine import Cost
from sojourn.knowledge import Decision, Episode
from sojourn.measure.observation import Moments, Observation, ObservedOperator
from sojourn.measure.sketch import Sketch
from sojourn.report.panel import Mark
from sojourn.report.plot.history import draw_history
from sojourn.report.run_panels import allocation, latency, load, processors, together, total
from sojourn.report.series import Course, OperatorPoint
from sojourn.report.turns import turns

P95, MEAN = sj.Target("p95", 3.0), sj.Target("mean", 1.0)
TIMED = Moments(4, 5.0, 10.0)
EXPECTED = Expected(statistic="p95", seconds=2.5, arrivals_per_s=2.0)


def turn(number, *, took_s=2.0, before=2, after=2, rate=2.0, cost=None, **changes):
    """Return a turn of ten seconds in which every root took *took_s*."""
    at_s, times = 10.0 * number, Sketch.of([took_s] * 4)
    seen = ObservedOperator(
        name="a", wanted=before, running=before, backlog=number, arrivals_per_s=rate,
        served_per_s=2.0, served=20.0, service=TIMED, wait=TIMED,
    )  # fmt: skip
    return Episode(
        observation=Observation(
            since_s=at_s - 10, at_s=at_s, operators={"a": seen}, arrivals_per_s=rate,
            completions=times, sums=times,
        ),
        decision=Decision(
            at_s=at_s,
            before=Plan.here({"a": before}),
            after=Plan.here({"a": after}, reason="so", expected=EXPECTED),
        ),
        cost=cost,
        **changes,
    )  # fmt: skip


def blind(number):
    nothing = Observation.unusable(10.0 * (number - 1), 10.0 * number, "no reports")
    return replace(turn(number), observation=nothing)


def course(*episodes, target=P95, **options):
    made = Course(target, **options)
    for each in turns(episodes, "p95"):
        made.add(each)
    return made


def test_a_point_says_what_a_turn_showed():
    first, second = course(turn(1), turn(2, took_s=4.0)).points
    assert (first.since_s, first.at_s, first.arrivals_per_s) == (0.0, 10.0, 2.0)
    assert first.measured_s == pytest.approx(2.0, rel=0.01)
    assert isnan(first.expected_s)
    assert second.expected_s == 2.5
    assert (first.outside, second.outside) == (0, 1)
    assert first.operators == {"a": OperatorPoint(2, 2, 2, nan, 1)} or isnan(
        first.operators["a"].called
    )


def test_of_a_blind_turn_only_the_allocation_is_known():
    (point,) = course(blind(1)).points
    assert point.unusable == "no reports"
    assert isnan(point.arrivals_per_s)
    assert isnan(point.operators["a"].running)
    assert (point.operators["a"].given, point.processors) == (2, 2)


def test_processors_are_counted_for_as_long_as_they_ran():
    assert course(turn(1), turn(2, before=5), blind(3)).used_s == 90.0


def test_changes_are_marked_and_a_wish_only_once():
    changed = Cost(changed={"a": (2, 3)})
    made = course(
        turn(1, after=3), turn(2, after=3), turn(3, after=4), turn(4, after=3, cost=changed)
    )
    assert made.marks == [Mark(10.0, "up advised"), Mark(30.0, "up advised"), Mark(40.0, "up")]


def test_of_a_run_without_an_end_the_last_is_kept():
    made = course(*map(turn, range(1, 20)), window_s=50.0)
    assert [each.at_s for each in made.points] == [140, 150, 160, 170, 180, 190]


def test_however_long_a_run_is_its_course_stays_small():
    """The load is the mean, latency and processors are the highest: peaks are what matters."""
    made = course(
        *(
            turn(n, rate=float(n % 2), took_s=9.0 if n == 77 else 2.0, before=2 + n // 90)
            for n in range(1, 101)
        ),
        most=10,
    )
    assert len(made.points) <= 10
    assert sum(each.turns for each in made.points) == 100
    assert sum(each.outside for each in made.points) == 1
    assert (made.edges[0], made.edges[-1]) == (0.0, 1000.0)
    assert max(each.measured_s for each in made.points) == pytest.approx(9.0, rel=0.01)
    assert all(0.4 < each.arrivals_per_s < 0.6 for each in made.points)
    assert made.points[-1].operators["a"].backlog == 100
    assert made.used_s == 10 * (89 * 2 + 11 * 3)


def test_points_of_blind_turns_stay_blind_and_another_statistic_is_not_mixed_in():
    both = course(blind(1), blind(2), blind(3), most=1).points[0]
    assert both.unusable == "no reports"
    assert isnan(both.arrivals_per_s)
    by_mean = replace(turn(2, took_s=0.5), target=MEAN)
    (mixed,) = course(turn(1, took_s=9.0), by_mean, most=1).points
    assert mixed.statistic == "mean"
    assert mixed.measured_s == pytest.approx(0.5, rel=0.01)
    half = course(turn(1), blind(2), most=1).points[0]
    assert half.unusable is None
    assert half.arrivals_per_s == 2.0


def test_by_another_statistic_what_was_measured_before_is_not_known():
    made = course(turn(1))
    made.aim_at(sj.Target("p95", 9.0))
    assert made.points[0].measured_s == pytest.approx(2.0, rel=0.01)
    made.aim_at(MEAN)
    assert isnan(made.points[0].measured_s)


# -- its charts --------------------------------------------------------------------------------


def test_every_series_of_a_turn_lies_between_two_edges():
    made = course(turn(1), turn(2), blind(3))
    for panel in (load(made), latency(made), allocation(made), total(made)):
        assert all(len(series.x) == len(series.y) + 1 for series in panel.series)
        assert panel.spans == ((20.0, 30.0),)
        assert panel.over_time


def test_what_is_not_known_at_all_has_no_line():
    roles = [series.role for series in latency(course(turn(1))).series]
    assert roles == ["measured", "target"]
    roles = [series.role for series in latency(course(turn(1), turn(2, took_s=4.0))).series]
    assert roles == ["measured", "expected", "target", "outside"]


def test_each_target_has_a_line_of_its_own():
    changed = course(turn(1), replace(turn(2), target=MEAN))
    targets = [series for series in latency(changed).series if series.role == "target"]
    assert [series.label for series in targets] == ["p95 ≤ 3 s", "then mean ≤ 1 s"]
    assert targets[1].y[1] == 1.0


def test_an_empty_course_can_be_drawn_as_nothing():
    assert load(course()).series[0].y == []
    assert latency(course()).summary == "Sojourn time, : unknown"


def test_all_operators_as_one_are_known_where_each_is():
    curves = [[OperatorPoint(1, 1, 1, 1, 1)], [OperatorPoint(2, 2, 2, nan, 2)]]
    (both,) = together(curves)
    assert (both.running, both.backlog) == (3, 3)
    assert isnan(both.called)


def test_processors_say_from_where_to_where_they_went():
    made = course(turn(1), turn(2, before=5))
    panel = processors(made, "a", made.operators()["a"])
    assert panel.summary == "processors, a: from 2 to 5 running"
    assert panel.whole


def test_the_ends_of_batches_are_drawn(tmp_path):
    committed = replace(turn(1).observation, commits=1)
    path = tmp_path / "h.svg"
    draw_history([replace(turn(1), observation=committed), turn(2)], path, P95)
    assert "<!-- end of a batch -->" in path.read_text(encoding="utf-8")


def test_a_very_dense_run_is_drawn_as_points(tmp_path):
    many = [turn(n) for n in range(1, 600)]
    (measured, *_) = latency(course(*many)).series
    assert measured.kind == "points"
    path = tmp_path / "h.png"
    draw_history(many, path, P95)
    assert path.read_bytes().startswith(b"\x89PNG")

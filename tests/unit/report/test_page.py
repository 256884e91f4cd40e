"""The page of a run, as `sojourn history --html` writes it."""

import xml.etree.ElementTree as ET
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser
from itertools import pairwise
from math import inf, isnan, nan

import pytest
from typer.testing import CliRunner

import sojourn as sj
from sojourn.cli import app
from sojourn.decide.objective import Slice
from sojourn.decide.plan import Expected, Plan
from sojourn.engine import Cost
from sojourn.errors import BadFile
from sojourn.history import HistoryFile, Run
from sojourn.knowledge import Decision, Episode, JudgedSlice, Wish
from sojourn.measure.observation import Moments, Observation, ObservedOperator
from sojourn.measure.sketch import Sketch
from sojourn.report.page.page import page, write_page
from sojourn.report.page.svg import Scale, joined, steps, thinned, time_ticks
from sojourn.text import printable

ODD = 'a <b> & "c"'
CHANGED = Cost(pause_s=7.0, replayed=3, changed={"a": (2, 3)})
ACROSS = Scale(low=0, high=100, below=0, above=100)
UP = Scale(low=0, high=10, below=10, above=0)


def topology(*names):
    arrivals = (sj.Arrival(name="in", per_s=2, into=names[0]),)
    operators = tuple(sj.Operator(name=name, service_s=0.5) for name in names)
    return sj.Topology(name="one", arrivals=arrivals, operators=operators)


def run(*names, target=("p95", 3.0), **changes):
    begun = Run(
        topology=topology(*names or ("a",)),
        plan=Plan.here(dict.fromkeys(names or ("a",), 2)),
        started_at=datetime(2026, 3, 1, 12, 0, tzinfo=UTC),
        every_s=10,
        policy="drs",
        target=target and sj.Target(*target),
    )
    return replace(begun, **changes)


def turn(
    number, *, took_s=2.0, before=2, after=2, backlog=1, names=("a",), cost=None, failure="",
    reason="well", expected_s=None, wanted=None, commits=0,
):  # fmt: skip
    """Return a turn of ten seconds in which every root took *took_s*."""
    at_s, times = 10.0 * number, Sketch.of([took_s] * 4)
    timed = Moments(4, 5.0, 10.0)
    seen = {
        name: ObservedOperator(
            name=name, wanted=before, running=before, backlog=backlog, arrivals_per_s=2.0,
            served_per_s=2.0, served=20.0, service=timed, wait=timed,
        )
        for name in names
    }  # fmt: skip
    said = None
    if expected_s is not None:
        said = Expected(statistic="p95", seconds=expected_s, arrivals_per_s=2.0)
    then = Plan.here(dict.fromkeys(names, after), reason=reason, expected=said)
    return Episode(
        observation=Observation(
            since_s=at_s - 10, at_s=at_s, operators=seen, arrivals_per_s=2.0,
            completed_per_s=2.0, completions=times, sums=times, commits=commits,
        ),
        decision=Decision(
            at_s=at_s, before=Plan.here(dict.fromkeys(names, before)), after=then,
            wish=replace(Wish.of(then), wanted=wanted),
        ),
        cost=cost,
        failure=failure,
    )  # fmt: skip


def blind(number):
    nothing = Observation.unusable(10.0 * (number - 1), 10.0 * number, "no reports")
    return replace(turn(number), observation=nothing)


RUN = [
    *(turn(n, expected_s=2.0, wanted={"a": 3}) for n in (1, 2, 3)),
    turn(4, took_s=4.0, after=3, cost=CHANGED, expected_s=2.5, reason="too slow: 3"),
    turn(5, before=3, after=3),
    blind(6),
    turn(7, before=3, after=3),
    turn(8, before=3, after=4, failure="no room", reason="too slow: 4"),
    turn(9, before=3, after=4, failure="no room", reason="too slow: 4"),
    turn(10, before=3, after=1, expected_s=inf, reason="too much: 1"),
]


def read(text):
    """Return the page as a tree; it is well-formed XML too, so that nothing is left open."""
    assert text.startswith("<!DOCTYPE html>\n")
    return ET.fromstring(text)


def made(episodes, begun=None):
    return read(page(episodes, begun or run()))


def words(element):
    return " ".join("".join(element.itertext()).split())


def facts(tree):
    return {
        words(each.find("dt")): words(each.find("dd")) for each in tree.iterfind(".//dl/div")
    }


def rows(tree):
    return [[words(cell) for cell in row] for row in tree.iterfind(".//tbody/tr[@id]")]


def paths(tree, kind):
    return [p.get("d") for p in tree.iter("path") if kind in (p.get("class") or "").split()]


def labels(tree):
    return [g.get("aria-label") for g in tree.iter("g") if g.get("role") == "img"]


def hovered(tree):
    return [title.text for title in tree.iterfind(".//rect/title")]


# -- what it says ------------------------------------------------------------------------------


def test_the_head_says_what_the_run_came_to():
    tree = made(RUN)
    assert words(tree.find(".//h1")) == "one, run 1"
    assert words(tree.find(".//p")) == "drs; started 2026-03-01 12:00:00 UTC"
    said = facts(tree)
    # nine turns were measured, one was above; the blind one counts its processors
    assert said["time outside the target"] == "11.1% 0:00:10 of 0:01:30"
    assert said["changes"] == "1 1 up, 2 up failed, 1 down advised"
    assert said["lasted"] == "0:01:40 10 turns, 1 unusable"
    assert said["last decision"] == "down advised too much: 1"
    assert said["target"].startswith("p95 ≤ 3 s 4.")


def test_time_outside_the_target_is_time_and_not_turns():
    """On Spark a look may come late, and then its turn is longer than the others."""
    late = turn(3, took_s=4.0)
    longer = replace(late, observation=replace(late.observation, at_s=50.0))
    said = facts(made([turn(1), turn(2), longer]))
    assert said["time outside the target"] == "60.0% 0:00:30 of 0:00:50"


def with_slices():
    """Return a run in which the second of three slices of 30 s was missed."""
    slices = [Slice(30.0 * n, 30.0 * n + 30, 60, 40 if n == 1 else 60) for n in range(3)]
    judged = [
        JudgedSlice(
            slice=each,
            kept=each.in_time == each.born,
            objective=sj.Objective(target=sj.Target("p95", 3.0), slice_s=30.0),
            level=0.1,
        )
        for each in slices
    ]
    return [
        replace(turn(n, took_s=4.0), judged=(judged[n // 3 - 1],) if n % 3 == 0 else ())
        for n in range(1, 10)
    ]


def test_slices_count_instead_of_turns_where_they_were_judged():
    tree = made(with_slices())
    said = facts(tree)
    assert said["slices kept"] == "66.67% 2 of 3 slices of 30 s; 99% are required"
    assert said["slices missed"] == "1 1 by the load"
    assert "time outside the target" not in said
    assert labels(tree)[1].endswith("p95 ≤ 3 s kept in 2 of 3 slices")
    assert labels(tree)[2] == "load planned for: 1.1 times the load"
    (outside,) = paths(tree, "outside")
    assert outside.count("M") == 3
    late = ["in a slice that was missed" in text for text in hovered(tree)]
    assert late == [False] * 3 + [True] * 3 + [False] * 3


def test_processors_are_counted_for_as_long_as_they_ran():
    said = facts(made([turn(1, before=2), turn(2, before=5), blind(3)]))
    assert said["processor-seconds used"] == "90 3 on average"


def test_each_decision_has_a_row_with_what_came_of_it():
    first, failed, advised = rows(made(RUN))
    assert first[:4] == ["0:00:40", "▲ up", "a 2 → 3; all 2 → 3", "too slow: 3"]
    assert first[4] == "p95 2.5 s"
    assert first[5] == "p95 1.998 s"
    # of the blind turn nothing is known: 4 turns until the next decision, 3 of them seen
    assert first[6].endswith(", 2 per s for 0:00:30")
    assert first[7] == "paused 7 s, 3 records replayed"
    assert failed[1] == "△ up failed, 2 turns"
    assert failed[3] == "too slow: 4; the engine: no room"
    assert advised[1] == "▽ down advised"
    assert advised[4:] == ["p95 never", "", "", ""]


def test_a_loop_that_failed_is_in_the_table():
    (row,) = rows(made([turn(1), turn(2, failure="lost"), turn(3, failure="lost"), turn(4)]))
    assert row[1:4] == ["✕ hold, 2 turns", "", "well: lost"]


def test_a_row_leads_to_its_time_and_back():
    tree = made(RUN)
    marks = {a.get("id"): a.get("href") for a in tree.iterfind(".//svg//a")}
    links = {row.get("id"): row.find(".//a").get("href") for row in tree.iterfind(".//tr[@id]")}
    assert marks == {"t1": "#d1", "t2": "#d2", "t3": "#d3"}
    assert links == {"d1": "#t1", "d2": "#t2", "d3": "#t3"}


def test_of_many_operators_a_row_names_some():
    names = tuple(f"op{n}" for n in range(12))
    tree = made([turn(1, names=names, after=3, cost=CHANGED)], run(*names))
    (row,) = rows(tree)
    assert row[2].endswith("op7 2 → 3 and 4 more; all 24 → 36")
    assert "processors, 5 others: 10 running" in labels(tree)
    assert "backlog, 5 others: 5 records" in labels(tree)


def test_predictions_are_told_beside_what_happened():
    tree = made(RUN)
    assert facts(tree)["prediction error"].endswith("times")
    (table,) = (t for t in tree.iter("table") if t.get("class") == "errors")
    assert words(table.find(".//tbody/tr/th")) == "latency"


def test_pointing_at_a_time_tells_all_of_it():
    told = hovered(made(RUN))
    assert len(told) == len(RUN)
    assert told[3].split("\n")[0] == "0:00:30 to 0:00:40"
    assert "outside the target" in told[3]
    assert "a: 2 running, 2 wanted, 3 needed, backlog 1" in told[0]
    assert told[5].startswith("0:00:50 to 0:01:00\nunusable: no reports")


def test_what_a_picture_shows_is_also_said():
    said = labels(made(RUN))
    assert said[0] == "Load: 2 roots per second"
    assert said[1].endswith("above p95 ≤ 3 s in 1 of 9 turns")
    assert said[2:] == [
        "processors, all: from 2 to 3 running",
        "processors, a: from 2 to 3 running",
        "backlog, a: 1 records",
    ]


def test_a_turn_outside_the_target_is_marked():
    (outside,) = paths(made(RUN), "outside")
    assert outside.count("M") == 1
    assert not paths(made(RUN, run(target=("p95", 9.0))), "outside")


def test_the_end_of_a_batch_is_marked():
    episodes = [turn(n, commits=int(n in {3, 6})) for n in range(1, 9)]
    (ends,) = paths(made(episodes), "commits")
    assert ends.count("M") == 2
    assert not paths(made([turn(1)]), "commits")


def test_each_turn_is_judged_by_its_own_target_and_orders_are_marked():
    p95, mean = sj.Target("p95", 3.0), sj.Target("mean", 1.0)
    order = Episode(
        observation=Observation.unusable(25.0, 25.0, "not an observation of the loop"),
        decision=Decision(
            at_s=25.0,
            before=Plan.here({"a": 2}),
            after=Plan.here({"a": 2}, reason="set by anna"),
        ),
        target=mean,
    )
    tree = made(
        [
            *(replace(turn(n), target=p95) for n in (1, 2)),
            order,
            *(replace(turn(n), target=mean) for n in (3, 4, 5)),
        ]
    )
    assert facts(tree)["target"] == "p95 ≤ 3 s, then mean ≤ 1 s changed by hand"
    assert facts(tree)["time outside the target"] == "60.0% 0:00:30 of 0:00:50"
    assert facts(tree)["changes"].strip() == "0"
    assert [line.count("M") for line in paths(tree, "target")] == [1, 1]
    assert [row[:4] for row in rows(tree)] == [["0:00:25", "● note", "", "set by anna"]]
    assert not paths(tree, "unusable")
    assert "sojourn time, p95, then mean, seconds" in "".join(tree.itertext())


def test_without_a_target_there_is_no_line_and_no_share():
    tree = made(RUN, run(target=None))
    assert not paths(tree, "target")
    assert "time outside the target" not in facts(tree)


def test_headers_say_what_they_are_of():
    tree = made(RUN)
    assert all(head.get("scope") in {"col", "row"} for head in tree.iter("th"))
    assert all(table.find("caption") is not None for table in tree.iter("table"))
    assert tree.get("lang") == "en"


# -- what may come -----------------------------------------------------------------------------


def test_no_turn_yet_is_a_page_too():
    tree = made([])
    assert "The loop has not had a turn yet." in words(tree)
    assert tree.find(".//svg") is None


def test_one_turn_is_drawn():
    tree = made([turn(1)])
    assert len(hovered(tree)) == 1
    assert "Nothing was changed" in words(tree)
    assert paths(tree, "load")[0].count("H") == 1


def test_turns_that_saw_nothing_leave_gaps():
    tree = made(RUN)
    assert paths(tree, "load")[0].count("M") == 2
    assert paths(tree, "line")[0].count("M") == 2
    assert all(d.count("M") == d.count("Z") == 2 for d in paths(tree, "running"))
    assert paths(tree, "unusable")[0].count("M") == 1


def test_nothing_but_blind_turns_is_drawn_as_nothing():
    tree = made([blind(1), blind(2)])
    assert labels(tree)[:2] == [
        "Load: unknown roots per second",
        "Sojourn time, p95: unknown; above p95 ≤ 3 s in 0 of 0 turns",
    ]
    assert facts(tree)["time outside the target"] == "unknown nothing was measured"
    assert facts(tree)["prediction error"] == "unknown nothing to compare"


def test_a_turn_at_no_time_is_left_out():
    lost = replace(turn(2).observation, at_s=nan)
    assert len(hovered(made([turn(1), replace(turn(2), observation=lost)]))) == 1
    assert made([replace(turn(2), observation=lost)]).find(".//svg") is None


def test_names_and_reasons_stay_text():
    named = replace(topology("a"), name=ODD)
    episodes = [turn(1, names=(ODD,), after=3, failure="</svg>", reason="<script>x</script>")]
    text = page(episodes, run(topology=named, policy="drs <i>"))
    tree = read(text)
    assert words(tree.find(".//h1")) == f"{ODD}, run 1"
    assert f"processors, {ODD}: 2 running" in labels(tree)
    assert rows(tree)[0][3] == "<script>x</script>; the engine: </svg>"
    assert tree.find(".//script") is None


def test_letters_that_are_none_are_left_out():
    assert printable("a\x00\x1b[1m\ud800\u202eb\nc", keep="\n") == "a  [1m  b\nc"
    read(page([turn(1, reason="\ud800\x0c")], run())).find("body")


class Started(HTMLParser):
    """What loads anything, by tag and attribute."""

    def __init__(self):
        super().__init__()
        self.loads, self.ids = [], []

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name == "id":
                self.ids.append(value)
            if name == "src" or (name.endswith("href") and not value.startswith("#")):
                self.loads.append((tag, value))


def test_a_page_needs_nothing_from_anywhere():
    text = page(RUN, run())
    parser = Started()
    parser.feed(text)
    assert not parser.loads
    assert len(parser.ids) == len(set(parser.ids))
    assert "url(" not in text
    assert "@import" not in text
    assert "http" not in text.replace("http-equiv", "")


# -- many turns --------------------------------------------------------------------------------


def test_of_many_turns_the_page_stays_small():
    """The same wish again is one decision; real changes are told up to a number."""
    names = tuple(f"op{n}" for n in range(10))
    episodes = (
        turn(n, names=names, took_s=1 + n % 7, backlog=n % 50, before=2 + n % 2,
             after=3 - n % 2, cost=CHANGED, reason="words of a reason " * 5)
        if n % 100 else blind(n)
        for n in range(1, 10_001)
    )  # fmt: skip
    text = page(episodes, run(*names))
    assert len(text.encode()) < 5_000_000
    tree = read(text)
    assert len(hovered(tree)) <= 1000
    assert len(rows(tree)) == 1000
    assert "8900 earlier decisions are not shown." in words(tree)
    assert all(d.count("V") <= 1100 for d in paths(tree, "running") + paths(tree, "load"))
    assert tree.find(".//g[@class='marks many']") is not None
    assert "turns" in hovered(tree)[0].split("\n")[0]


def test_thinning_keeps_the_highest_the_lowest_and_the_gaps():
    values = [float(n % 13) for n in range(20_000)]
    values[7_777], values[12_345], values[15_000] = 99.0, -5.0, nan
    kept = thinned(values, 1000)
    assert len(kept) <= 1000
    assert {0, 7_777, 12_345, 15_000, 19_999} <= set(kept)
    assert all(one < other for one, other in pairwise(kept))
    assert sum(isnan(values[n]) for n in kept) == 1


def test_few_values_are_all_kept():
    assert thinned([1.0, nan, 1.0]) == [0, 1, 2]
    assert thinned([]) == []


def test_a_long_gap_stays_one():
    kept = thinned([nan] * 5000, 1000)
    assert len(kept) <= 1000


# -- curves ------------------------------------------------------------------------------------


def test_steps_hold_each_value_until_the_next():
    edges, values = [0, 10, 20, 30, 40], [5.0, 10.0, nan, 0.0]
    assert steps(ACROSS, UP, edges, values, filled=False) == "M0 5V5H10V0H20M30 10V10H40"
    assert (
        steps(ACROSS, UP, edges, values, filled=True) == "M0 10V5H10V0H20V10ZM30 10V10H40V10Z"
    )
    assert steps(ACROSS, UP, edges[:2], [nan], filled=True) == ""


def test_lines_are_broken_at_gaps():
    assert joined([(5, 5), (15, 0), None, (35, 10)]) == "M5 5L15 0M35 10"


@pytest.mark.parametrize("most", [1e-6, 0.3, 1.0, 4.4, 41.0, 99.0, 100.0, 1e9])
def test_a_scale_has_few_round_ticks_and_room_for_all(most):
    for ticks in (2, 3, 4, 5):
        scale = Scale.of([most, nan, 0.0], height=50, ticks=ticks)
        assert 2 <= len(scale.ticks) <= ticks + 1
        assert 0 <= scale.at(most) < scale.at(0) == 50


def test_what_is_whole_has_whole_ticks():
    assert Scale.of([1.0], height=50, whole=True).ticks == (0, 1)
    assert Scale.of([], height=50, whole=True).ticks == (0, 1)


def test_latencies_far_apart_are_drawn_by_powers_of_ten():
    scale = Scale.of([0.02, 30.0], height=100, powers=True)
    assert scale.ticks == pytest.approx((0.01, 0.1, 1, 10, 100))
    assert [scale.at(value) for value in (0.0, 0.01, 1.0, 100.0)] == [100, 100, 50, 0]


def test_times_on_the_axis_are_round():
    assert time_ticks(0, 60) == (0, 10, 20, 30, 40, 50, 60)
    assert time_ticks(0.2, 0.4) == (0.2,)
    assert len(time_ticks(0, 400 * 86_400)) <= 10


# -- as a command ------------------------------------------------------------------------------


def written(path):
    with HistoryFile(path) as history:
        history.begin(run())
        for episode in RUN:
            history.append(episode)
    return path


def test_history_writes_the_page(tmp_path):
    out = tmp_path / "deep" / "run.html"
    file = written(tmp_path / "h")
    done = CliRunner().invoke(app, ["history", str(file), "--html", str(out)])
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("one · run 1 of 1\n")
    text = out.read_text(encoding="utf-8")
    assert text == page(RUN, run())


def test_a_page_that_cannot_be_written_says_so(tmp_path):
    (tmp_path / "full.html").mkdir()
    file = written(tmp_path / "h")
    before = file.read_bytes()
    for out, said in (
        (tmp_path / "full.html", "cannot be written"),
        (file, "does not end in .html; rename it"),
    ):
        done = CliRunner().invoke(app, ["history", str(file), "--html", str(out)])
        assert done.exit_code == 2
        assert said in done.stderr
        assert not done.stdout
        with pytest.raises(BadFile, match=said):
            write_page(RUN, run(), out)
    assert file.read_bytes() == before

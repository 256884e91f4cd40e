import json
import resource
import sqlite3
import subprocess
import sys
import tempfile
from collections import deque
from contextlib import closing
from dataclasses import fields, is_dataclass, replace
from datetime import UTC, datetime, timedelta, timezone
from math import isfinite, nan
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sojourn as sj
from sojourn.act.policy import policy
from sojourn.decide.objective import Objective, Slice
from sojourn.decide.plan import Expected, NodePlan, Plan
from sojourn.engine import Cost
from sojourn.errors import BadFile, BadInput
from sojourn.history import HistoryFile, Run, read, read_episodes, read_run, read_runs
from sojourn.history.file import opened
from sojourn.knowledge import Decision, Episode, JudgedSlice, Knowledge, Wish
from sojourn.loop import Loop
from sojourn.measure.node_costs import NodeCosts
from sojourn.measure.observation import (
    Moments,
    Observation,
    ObservedNode,
    ObservedOperator,
)
from sojourn.measure.sketch import Sketch
from sojourn.simulate.simulator import Simulator
from sojourn.simulate.workload import Rates, Workload
from sojourn.topology.node_cores import NodeCores
from strategies import topologies

VLD = sj.read_topology(Path(__file__).parents[3] / "examples" / "vld.yaml").scaled(6 / 13)
TARGET = sj.Target("p95", 3.0)
NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
RUN = Run(
    topology=VLD,
    plan=Plan.here({"extract": 5, "match": 5, "aggregate": 1}, reason="by hand"),
    started_at=NOON,
    every_s=10,
    policy="drs, p95 ≤ 3 s",
    target=TARGET,
    midnight_s=43200,
)

# -- whatever there is -------------------------------------------------------------------------

numbers = st.floats() | st.sampled_from([0.0, -0.0, 1e-320, 1e308])
whole = st.integers(0, 10**9)
names = st.text(min_size=1, max_size=8) | st.just("float")
sketches = st.lists(st.floats(0, 1e12), max_size=30).map(Sketch.of) | st.builds(
    Sketch.of_counts, st.just(Sketch.empty().counts), numbers, numbers
)
moments = st.builds(Moments, numbers, numbers, numbers)
operators = st.builds(
    ObservedOperator,
    name=names, wanted=whole, running=whole, backlog=whole, arrivals_per_s=numbers,
    served_per_s=numbers, served=numbers, service=moments, wait=moments,
    arrival_scv=st.none() | numbers, bins=numbers | whole, utilisation=st.none() | numbers,
    cpu_s=st.none() | numbers, longest_service_s=st.none() | numbers, memory_bytes=whole,
    bytes_per_s=st.dictionaries(names, numbers, max_size=3), hottest=numbers,
    missing=st.text(), at_work=st.none() | whole,
)  # fmt: skip


def mappings(values):
    return st.dictionaries(names, values, max_size=3)


nodes = st.builds(
    ObservedNode, cores=numbers, busy_cores=st.none() | numbers, running=mappings(whole),
    computing=mappings(numbers),
)  # fmt: skip
observations = st.builds(
    Observation,
    since_s=numbers, at_s=numbers | whole, usable=st.booleans(), reason=st.text(),
    notes=st.lists(st.text(), max_size=2).map(tuple), operators=mappings(operators),
    arrivals_per_s=numbers, completed_per_s=numbers, streams=mappings(numbers),
    completions=sketches, sums=sketches, cores=st.none() | numbers,
    busy_cores=st.none() | numbers, nodes=mappings(nodes), per_node=whole, most_nodes=whole,
    warming=st.booleans(), commits=whole,
    node_costs=st.builds(NodeCosts, adding_s=st.none() | numbers, removing_s=numbers),
) | st.builds(Observation.unusable, numbers, numbers, st.text())  # fmt: skip
expectations = st.builds(
    Expected,
    statistic=st.sampled_from(["mean", "p50", "p95"]),
    seconds=numbers,
    arrivals_per_s=numbers,
    sojourns_s=mappings(numbers),
)
node_plans = st.builds(
    NodePlan,
    number=st.integers(1, 99),
    given_back=st.lists(names, max_size=3).map(tuple),
    reason=st.text(),
)
plans = st.builds(
    Plan,
    nodes=st.none() | node_plans,
    placement=mappings(st.dictionaries(names, st.integers(1, 10**9), min_size=1, max_size=3)),
    admission=mappings(st.floats(0, 1)),
    reason=st.text(),
    expected=st.none() | expectations,
)
said = st.fixed_dictionaries(
    {"goal": st.text(), "wanted": st.none() | mappings(whole), "offered": mappings(numbers)}
)


@st.composite
def decided(draw):
    """Return a decision that carries out a wish, or does so only as far as it may."""
    after = draw(plans)
    wished = draw(st.just(after) | plans)
    wish = replace(Wish.of(wished), noise=draw(mappings(numbers)), **draw(said))
    return Decision(at_s=draw(numbers), before=draw(plans), after=after, wish=wish)


decisions = decided()
costs = st.builds(
    Cost, pause_s=numbers, replayed=st.integers(), changed=mappings(st.tuples(whole, whole))
)
judged_slices = st.builds(
    JudgedSlice,
    slice=st.builds(
        Slice,
        since_s=numbers.filter(isfinite),
        until_s=numbers.filter(isfinite),
        born=whole,
        in_time=whole,
        sum_s=numbers,
    ),
    kept=st.booleans(),
    objective=st.builds(Objective, target=st.just(TARGET), kept=st.floats(0.01, 0.99)),
    level=numbers.filter(isfinite),
    cause=st.text(),
)
episodes = st.builds(
    Episode,
    observation=observations,
    decision=decisions,
    cost=st.none() | costs,
    failure=st.just("") | st.text(),
    judged=st.lists(judged_slices, max_size=2).map(tuple),
)


def exactly(value):
    """Return what tells *value* from anything else: NaN is NaN, -0 is not 0, 1 is not 1.0."""
    if is_dataclass(value):
        return type(value), [exactly(getattr(value, field.name)) for field in fields(value)]
    if isinstance(value, dict):
        return [(name, exactly(inside)) for name, inside in value.items()]
    if isinstance(value, tuple):
        return tuple(map(exactly, value))
    return (value.dtype, value.tobytes()) if isinstance(value, np.ndarray) else repr(value)


def written(path, turns, run=RUN, **options):
    with HistoryFile(path, **options) as history:
        history.begin(run)
        for episode in turns:
            history.append(episode)
    return path


@given(drawn=st.lists(episodes, max_size=4))
@settings(max_examples=60)
def test_turns_come_back_exactly_as_they_were(drawn):
    with tempfile.TemporaryDirectory() as folder:
        path = written(Path(folder) / "h.db", drawn)
        found = list(read_episodes(path))
    assert list(map(exactly, found)) == list(map(exactly, drawn))


@given(topology=topologies())
@settings(max_examples=40)
def test_a_topology_comes_back_as_it_was_declared(topology):
    run = replace(RUN, topology=topology, plan=Plan.here(dict.fromkeys(topology.operator, 3)))
    with tempfile.TemporaryDirectory() as folder:
        path = written(Path(folder) / "h.db", [], run)
        assert read_runs(path) == {1: run}
        assert read(path) == Knowledge(topology=topology, plan=run.plan, midnight_s=43200)


def test_cores_of_a_topology_come_back(tmp_path):
    extract, *others = VLD.operators
    computing = replace(VLD, operators=(replace(extract, cpu_s=0.2), *others))
    for cores in (3.5, NodeCores(nodes={"executor-1": 4.0, "executor-2": 2.5})):
        run = replace(RUN, topology=replace(computing, cores=cores))
        path = written(tmp_path / f"{type(cores).__name__}.db", [], run)
        assert read_run(path)[1].topology == run.topology


def test_what_was_counted_with_numpy_comes_back_as_plain_numbers(tmp_path):
    three = np.int64(3)
    counted = turn(1, after=Plan.here({"a": three}), cost=Cost(changed={"a": (2, three)}))
    (back,) = read_episodes(written(tmp_path / "h.db", [counted]))
    assert type(back.decision.after.allocation["a"]) is int
    assert back.cost == counted.cost


def test_text_that_is_no_unicode_comes_back_too(tmp_path):
    odd = replace(turn(1), failure="no such file: caf\udce9")
    path = written(tmp_path / "h.db", [odd])
    assert next(read_episodes(path)).failure == odd.failure
    assert ask(path, "SELECT failure FROM turns") == [("no such file: caf\\udce9",)]


# -- a loop's own ------------------------------------------------------------------------------


def turn(number, *, after=None, cost=None, usable=True, **decided):
    """Return a turn of ten seconds, of an application with one operator."""
    since_s, at_s, before = 10.0 * (number - 1), 10.0 * number, Plan.here({"a": 2})
    seen = (
        Observation(since_s=since_s, at_s=at_s, arrivals_per_s=6.0, sums=Sketch.of([1.0, 2.0]))
        if usable
        else Observation.unusable(since_s, at_s, "no reports")
    )
    plan = replace(after or before, reason=f"turn {number}")
    wish = replace(Wish.of(plan), **decided)
    decision = Decision(at_s=at_s, before=before, after=plan, wish=wish)
    return Episode(observation=seen, decision=decision, cost=cost)


class Ran(NamedTuple):
    path: Path
    loop: Loop
    episodes: list[Episode]


@pytest.fixture(scope="session")
def ran(tmp_path_factory):
    """Return a loop that wrote its history while the load rose and fell."""
    path = tmp_path_factory.mktemp("history") / "deep" / "vld.history"
    rates = Rates.steps((0, 6), (300, 12), (700, 6))
    engine = Simulator(
        workload=Workload(rates={"frames": rates}), seed=1, sample_every=1, pause_s=2.0
    )
    with engine, HistoryFile(path) as history:
        engine.start(VLD, RUN.plan)
        loop = Loop(engine, VLD, policy("drs", target=TARGET), every_s=10)
        history.begin(replace(RUN, midnight_s=0.0))
        turns = []
        for episode in loop.run(1500):
            history.append(episode)
            turns.append(episode)
    return Ran(path, loop, turns)


def test_a_loop_can_go_on_with_what_was_read(ran):
    found, known = read(ran.path), ran.loop.knowledge
    assert {e.decision.kind for e in ran.episodes} >= {"hold", "up"}
    assert len(found.episodes) == len(ran.episodes) == 150
    for field in ("topology", "plan", "seen", "changed_at_s", "midnight_s", "keep"):
        assert getattr(found, field) == getattr(known, field), field
    assert exactly(found.episodes) == exactly(known.episodes)
    assert found.prediction_error() == known.prediction_error()


def test_no_more_turns_are_read_than_are_kept(ran):
    known = ran.loop.knowledge
    changed = max(n for n, e in enumerate(ran.episodes) if e.cost is not None)
    keep = len(ran.episodes) - changed - 1
    found = read(ran.path, keep=keep)
    assert exactly(found.episodes) == exactly(known.episodes[-keep:])
    assert (found.keep, found.allocation) == (keep, known.allocation)
    # the last change is older than that, and is known all the same
    assert 0 < found.changed_at_s == known.changed_at_s < found.episodes[0].decision.at_s


def test_a_run_without_a_turn_is_as_it_began(tmp_path):
    found = read(written(tmp_path / "h.db", []))
    assert (found.topology, found.plan, found.episodes) == (VLD, RUN.plan, ())


def ask(path, question):
    connection = sqlite3.connect(path)
    try:
        return connection.execute(question).fetchall()
    finally:
        connection.close()


def test_anyone_can_ask_the_file(ran):
    columns = (
        "at_s, usable, arrivals_per_s, mean_s, p95_s, kind, processors_before, "
        "processors_after, allocation_after, reason, expected_statistic, expected_s, pause_s"
    )
    changes = ask(ran.path, f"SELECT {columns} FROM turns WHERE changed > 0 ORDER BY turn")
    first = next(e for e in ran.episodes if e.cost is not None)
    seen, decision, expected = first.observation, first.decision, first.decision.expected
    assert len(changes) == sum(e.cost is not None for e in ran.episodes)
    assert changes[0] == (
        seen.at_s, 1, seen.arrivals_per_s, seen.mean_s, seen.percentile_s(0.95),
        decision.kind, decision.before.processors, decision.after.processors,
        str(decision.after), decision.reason,
        expected and expected.statistic, expected and expected.seconds, 2.0,
    )  # fmt: skip
    backlogs = ask(
        ran.path,
        "SELECT max(json_extract(o.value, '$.backlog')) "
        "FROM turns, json_each(record, '$.observation.operators') AS o",
    )
    most = max(o.backlog for e in ran.episodes for o in e.observation.operators.values())
    assert backlogs == [(most,)]


def test_json_in_the_file_is_strict(tmp_path):
    path = written(tmp_path / "h.db", [turn(1, usable=False, offered={"a": nan})])
    ((record,),) = ask(path, "SELECT record FROM turns")

    def refused(constant):
        raise AssertionError(constant)

    json.loads(record, parse_constant=refused)


def test_the_declared_topology_in_the_file_is_a_topology_file(ran):
    ((text,),) = ask(ran.path, "SELECT topology FROM runs")
    assert sj.parse_topology(text) == VLD


# -- written and read at once ------------------------------------------------------------------


def test_a_reader_sees_each_turn_as_soon_as_it_is_appended(tmp_path):
    path = tmp_path / "h.db"
    with HistoryFile(path) as history:
        history.begin(RUN)
        for number in range(1, 6):
            history.append(turn(number))
            assert len(list(read_episodes(path))) == number


def test_a_slow_reader_keeps_nobody_from_writing(tmp_path):
    path = tmp_path / "h.db"
    with HistoryFile(path) as history:
        history.begin(RUN)
        for number in range(1, 4):
            history.append(turn(number))
        reading = read_episodes(path)
        assert next(reading).decision.reason == "turn 1"
        for number in range(4, 300):
            history.append(turn(number))
        reasons = [episode.decision.reason for episode in reading]
    assert reasons == [f"turn {number}" for number in range(2, 300)]


def test_whoever_asks_the_file_for_long_keeps_nobody_from_writing(tmp_path):
    path = tmp_path / "h.db"
    with HistoryFile(path, wait_s=0.0) as history:
        history.begin(RUN)
        history.append(turn(1))
        asking = sqlite3.connect(path, isolation_level=None)
        asking.execute("BEGIN")
        assert asking.execute("SELECT count(*) FROM turns").fetchone() == (1,)
        history.append(turn(2))
        assert asking.execute("SELECT count(*) FROM turns").fetchone() == (1,)
        asking.close()
    assert len(list(read_episodes(path))) == 2


def test_two_may_write_to_one_file(tmp_path):
    path = tmp_path / "h.db"
    with HistoryFile(path) as one, HistoryFile(path) as other:
        assert (one.begin(RUN), other.begin(RUN)) == (1, 2)
        for number in range(1, 4):
            one.append(turn(number))
            other.append(turn(number + 100))
    assert [e.decision.reason for e in read_episodes(path, run=1)][-1] == "turn 3"
    assert [e.decision.reason for e in read_episodes(path, run=2)][-1] == "turn 103"


def test_a_killed_process_loses_nothing_that_was_appended(ran, tmp_path):
    path = tmp_path / "h.db"
    program = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from sojourn.history import *\n"
        "source, path = map(Path, sys.argv[1:])\n"
        "history = HistoryFile(path)\n"
        "history.begin(read_run(source)[1])\n"
        "for number, episode in enumerate(read_episodes(source)):\n"
        "    history.append(episode)\n"
        "    if number == 6:\n"
        "        history._connection.execute('BEGIN IMMEDIATE')\n"
        "        history._connection.execute('UPDATE turns SET run = 99')\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, ran.path, path], check=False)
    assert done.returncode == -9
    assert exactly(tuple(read_episodes(path))) == exactly(tuple(ran.episodes[:7]))
    written(path, [turn(1)])
    assert list(read_runs(path)) == [1, 2]


def test_what_is_closed_is_one_plain_file(tmp_path):
    path = written(tmp_path / "h.db", [turn(1)])
    assert list(tmp_path.iterdir()) == [path]
    assert ask(path, "PRAGMA journal_mode") == [("delete",)]


def test_a_file_that_someone_reads_can_be_closed(tmp_path):
    path = tmp_path / "h.db"
    history = HistoryFile(path)
    history.begin(RUN)
    history.append(turn(1))
    reading = read_episodes(path)
    next(reading)
    history.close()
    history.close()
    assert list(reading) == []
    assert len(list(read_episodes(path))) == 1


# -- several runs, and not too many turns ------------------------------------------------------


def test_runs_follow_each_other_in_one_file(tmp_path):
    path = tmp_path / "h.db"
    later = replace(
        RUN,
        started_at=datetime(2026, 3, 2, 7, 30, tzinfo=timezone(timedelta(hours=2))),
        policy="static",
        target=None,
    )
    written(path, [turn(1), turn(2)])
    written(path, [turn(7)], later)
    assert read_runs(path) == {1: RUN, 2: later}
    assert read_run(path) == (2, later)
    assert read_run(path, 1) == (1, RUN)
    assert [e.decision.reason for e in read_episodes(path)] == ["turn 7"]
    assert [e.decision.reason for e in read_episodes(path, run=1)] == ["turn 1", "turn 2"]
    with pytest.raises(BadFile, match=r"h\.db: has no run 3; it has runs 1 to 2"):
        read_run(path, 3)


def judged(number):
    """Return a turn in which a slice was judged."""
    found = JudgedSlice(
        slice=Slice(60.0 * number, 60.0 * number + 60, 100, 80, 123.0),
        kept=False,
        objective=Objective(target=TARGET),
        level=0.2,
        cause="caf\udce9",
    )
    return replace(turn(number), judged=(found,))


def slices(path):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(
            "SELECT run, turn, since_s, in_time, mean_s, kept, cause FROM slices"
        ).fetchall()


def test_slices_can_be_queried_as_long_as_their_turns_are_kept(tmp_path):
    path = tmp_path / "h.db"
    written(path, map(judged, range(1, 9)), most_turns=2)
    expected = [(1, n, 60.0 * n, 80, 1.23, 0, "caf\\udce9") for n in (7, 8)]
    assert slices(path) == expected
    assert [e.judged[0].slice.since_s for e in read_episodes(path)] == [420.0, 480.0]


def test_a_history_that_was_begun_without_slices_goes_on_with_them(tmp_path):
    path = written(tmp_path / "h.db", [turn(1)])
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TABLE slices")
    assert [e.judged for e in read_episodes(path)] == [()]
    written(path, [judged(2)])
    assert [run for run, *_ in slices(path)] == [2]


def test_the_oldest_turns_make_room(tmp_path):
    path = tmp_path / "h.db"
    written(path, [turn(1), turn(2)])
    written(path, map(turn, range(3, 60)), most_turns=5)
    assert [e.decision.reason for e in read_episodes(path)] == [
        f"turn {number}" for number in range(55, 60)
    ]
    assert list(read_episodes(path, run=1)) == []
    size = path.stat().st_size
    written(path, map(turn, range(60, 200)), most_turns=5)
    assert path.stat().st_size <= 2 * size
    assert list(read_runs(path)) == [2, 3]  # nothing was left of the first


# -- what is refused ---------------------------------------------------------------------------


def everyway(path):
    """Return all that reads or writes."""
    return (
        lambda: read(path),
        lambda: read_runs(path),
        lambda: next(read_episodes(path)),
        lambda: HistoryFile(path),
    )


@pytest.mark.parametrize("way", range(4))
def test_what_is_not_a_history_is_refused_and_left_alone(tmp_path, way):
    text = tmp_path / "notes.txt"
    text.write_text("not a database\n" * 100, encoding="utf-8")
    other, meta = tmp_path / "other.db", tmp_path / "meta.db"
    for path, columns in ((other, "t (x)"), (meta, "meta (version)")):
        connection = sqlite3.connect(path)
        connection.execute(f"CREATE TABLE {columns}")
        connection.executescript("CREATE TABLE runs (x); CREATE TABLE turns (x)")
        connection.close()
    for path in (text, other, meta):
        before = path.read_bytes()
        with pytest.raises(BadFile, match=f"{path.name}: is not a history; name a file that"):
            everyway(path)[way]()
        assert path.read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.parametrize("way", range(4))
@pytest.mark.parametrize("number", [1, 3])
def test_a_history_of_another_format_is_refused(tmp_path, number, way):
    path = written(tmp_path / "h.db", [turn(1)])
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("UPDATE meta SET value = ? WHERE key = 'format'", (str(number),))
    connection.close()
    said = f"format {number}, but this version has 2; use the version of sojourn that"
    with pytest.raises(BadFile, match=said):
        everyway(path)[way]()


def test_another_application_with_such_tables_is_refused(tmp_path):
    path = written(tmp_path / "h.db", [turn(1)])
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("UPDATE meta SET value = 'x' WHERE key = 'application'")
    connection.close()
    with pytest.raises(BadFile, match="is not a history"):
        read(path)


def test_what_cannot_be_opened_is_named(tmp_path):
    missing = tmp_path / "missing.db"
    with pytest.raises(BadFile, match=r"missing\.db: cannot be read: No such file .*; check"):
        read(missing)
    assert not missing.exists()
    with pytest.raises(BadFile, match="cannot be read: Is a directory"):
        read(tmp_path)
    with pytest.raises(BadFile, match="cannot be written: Is a directory"):
        HistoryFile(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(BadFile, match="cannot be written"):
        HistoryFile(tmp_path / "file" / "h.db")
    with pytest.raises(BadFile, match="cannot be read: embedded null"):
        read(Path("h\0.db"))


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="a place nobody may write to")
def test_a_place_where_nothing_can_be_written_is_named():
    with pytest.raises(BadFile, match=r"/proc/h\.db: cannot be written: .*; check the path"):
        HistoryFile(Path("/proc/h.db"))


def test_an_empty_file_becomes_a_history_but_is_none_yet(tmp_path):
    path = tmp_path / "h.db"
    path.touch()
    with pytest.raises(BadFile, match="is not a history"):
        read(path)
    HistoryFile(path).close()
    with pytest.raises(BadFile, match="has no run; wait until an application has started"):
        read(path)
    written(path, [turn(1)])
    with pytest.raises(BadFile, match="has no run 7; it has run 1"):
        read(path, run=7)


def test_a_damaged_file_is_said_to_be_damaged(ran, tmp_path):
    path = tmp_path / "h.db"
    whole_file = bytearray(ran.path.read_bytes())
    for place in range(40_000, len(whole_file), 16384):
        whole_file[place : place + 9000] = b"\xff" * 9000
    path.write_bytes(whole_file)
    with pytest.raises(BadFile, match=r"is damaged; restore a copy|cannot be read"):
        list(read_episodes(path))
    path.write_bytes(ran.path.read_bytes()[:50_000])
    with pytest.raises(BadFile, match="is damaged; restore a copy"):
        list(read_episodes(path))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("turns SET record = '{'", "turn 1 cannot be read: JSONDecodeError"),
        ("turns SET record = '{}'", "turn 1 cannot be read: KeyError"),
        ("turns SET record = '[]'", "turn 1 cannot be read: TypeError"),
        ("turns SET sums = x'00'", "turn 1 cannot be read: error: Error -5"),
        ("turns SET sums = 'text'", "turn 1 cannot be read: TypeError"),
        ("runs SET topology = '{\"format\": 1}'", "run 1 cannot be read: BadTopology"),
        ("runs SET started_at = 'noon'", "run 1 cannot be read: ValueError"),
        ("runs SET every_s = 0", "run 1 cannot be read: BadInput: every_s is 0.0"),
        ("runs SET target_s = 'soon'", "run 1 cannot be read: BadTarget"),
    ],
)
def test_a_row_that_was_changed_by_hand_is_named(tmp_path, change, said):
    path = written(tmp_path / "h.db", [turn(1)])
    connection = sqlite3.connect(path)
    with connection:
        connection.execute(f"UPDATE {change}")
    connection.close()
    with pytest.raises(BadFile, match=said):
        read(path)


def test_a_sketch_of_other_buckets_is_refused(tmp_path, monkeypatch):
    path = written(tmp_path / "h.db", [turn(1)])
    monkeypatch.setattr("sojourn.measure.sketch._BUCKETS", 7)
    with pytest.raises(BadFile, match="ValueError: the sketch has 10385 buckets, but this ver"):
        list(read_episodes(path))


def test_a_locked_file_is_said_to_be_locked(tmp_path):
    path = written(tmp_path / "h.db", [turn(1)])
    with HistoryFile(path, wait_s=0.0) as history:
        history.begin(RUN)
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(BadFile, match="is locked by another program; close it there"):
            history.append(turn(2))
        assert len(list(read_episodes(path, run=1))) == 1
        other.execute("ROLLBACK")
        other.close()
        history.append(turn(2))
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    for to in ("read", "append"):  # as everything that reads or writes begins
        with pytest.raises(BadFile, match="is locked by another program"):
            opened(path, to=to, wait_s=0.0)
    other.close()
    assert len(list(read_episodes(path))) == 1


def test_a_turn_that_finds_no_room_is_refused_and_the_others_stay(tmp_path):
    path = written(tmp_path / "h.db", [turn(1)])
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with HistoryFile(path) as history:
        history.begin(RUN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size, before[1]))
        try:
            with pytest.raises(BadFile, match=r"h\.db: cannot be written: .*; check the disk"):
                deque(map(history.append, map(turn, range(2, 200))))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert 0 < len(list(read_episodes(path))) < 198
    assert len(list(read_episodes(path, run=1))) == 1


def test_a_turn_belongs_to_a_run(tmp_path):
    with (
        HistoryFile(tmp_path / "h.db") as history,
        pytest.raises(BadInput, match="no run has begun; call begin"),
    ):
        history.append(turn(1))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"every_s": 0}, "every_s is 0"),
        ({"every_s": nan}, "every_s is nan"),
        ({"midnight_s": nan}, "midnight_s is nan"),
        ({"started_at": datetime(2026, 3, 1)}, "without a time zone; give it one"),  # noqa: DTZ001
    ],
)
def test_a_run_that_cannot_be_is_refused(wrong, said):
    with pytest.raises(BadInput, match=said):
        replace(RUN, **wrong)


def test_at_least_one_turn_is_kept(tmp_path):
    with pytest.raises(BadInput, match="most_turns is 0; write 1 or more"):
        HistoryFile(tmp_path / "h.db", most_turns=0)
    assert not (tmp_path / "h.db").exists()

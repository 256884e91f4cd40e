"""When a machine counts as added, and when as removed."""

import pytest

from sojourn.decide.solution import NodeSize
from sojourn_papers.experiments.machine_changes import (
    MachineChange,
    MachineLog,
    machine_changes,
)
from sojourn_papers.experiments.machine_steps import (
    Step,
    machine_line,
    machine_marks,
    machine_steps,
    with_machines,
)
from sojourn_papers.experiments.record import Table
from sojourn_papers.experiments.timeline import Change, Minute, Watched

NODES = NodeSize(slots=5, reserved=3)
ADDED = MachineChange(kind="added", at_s=26.0, took_s=4.0, ready_s=3.0)
REMOVED = MachineChange(kind="removed", at_s=30.0, took_s=1.0, ready_s=0.5)


@pytest.fixture
def log():
    """Return a log in which two nodes were there before."""
    log = MachineLog()
    log.look(0.0, wanted=2, planned={"a": 4, "b": 3}, running={"a": 4, "b": 3})
    return log


def test_the_nodes_of_the_first_look_were_not_added(log):
    log.look(1.0, wanted=2, planned={"a": 4, "b": 3}, running={"a": 4, "b": 3})
    assert log.changes == ()


def test_a_node_is_removed_when_it_is_gone_and_not_when_it_is_empty(log):
    log.look(10.0, wanted=1, planned={"a": 4, "b": 1}, running={"a": 4, "b": 3})
    log.look(10.5, wanted=1, planned={"a": 5}, running={"a": 5, "b": 1})
    log.look(11.0, wanted=1, planned={"a": 5}, running={"a": 5, "b": 0})
    log.look(12.0, wanted=1, planned={"a": 5}, running={"a": 5, "b": 0})
    assert log.changes == ()
    log.look(14.0, wanted=1, planned={"a": 5}, running={"a": 5})
    (gone,) = log.changes
    assert gone == MachineChange(kind="removed", at_s=14.0, took_s=4.0, ready_s=1.0)
    assert "removed in 4.0 s; it had no processors after 1.0 s" in str(gone)


def test_a_node_that_comes_back_is_added_again_with_its_own_times(log):
    log.look(10.0, wanted=1, planned={"a": 5}, running={"a": 5, "b": 0})
    log.look(11.0, wanted=1, planned={"a": 5}, running={"a": 5})
    log.look(20.0, wanted=2, planned={"a": 9}, running={"a": 9})
    log.look(25.0, wanted=2, planned={"a": 5, "c": 4}, running={"a": 9, "c": 3})
    log.look(27.0, wanted=2, planned={"a": 5, "c": 4}, running={"a": 5, "c": 4})
    assert [change.kind for change in log.changes] == ["removed", "added"]
    assert (log.changes[-1].took_s, log.changes[-1].ready_s) == (7.0, 5.0)


# -- steps -------------------------------------------------------------------------------------


def watched(machines):
    minutes = [
        Minute(minute=float(n), mean_s=1.0, completion_s=1.0, per_s=1.0, allocation="8:8:1")
        for n in (1, 2, 3)
    ]
    change = Change(minute=2.0, kind="up", before="8:8:1", after="10:11:1")
    return Watched(minutes=tuple(minutes), changes=(change,), machines=machines, minute_s=10.0)


def test_without_machines_there_are_as_many_as_processors_need():
    assert machine_steps(17, NODES, watched(None)) == [Step(0.0, 4), Step(2.0, 5)]


def test_with_machines_there_are_those_that_came_whatever_was_decided():
    """A machine that never came is not counted because it was wanted."""
    assert machine_steps(17, NODES, watched(())) == [Step(0.0, 4)]
    steps = machine_steps(17, NODES, watched((ADDED, REMOVED)))
    assert [(step.minute, step.machines) for step in steps] == [(0.0, 4), (2.6, 5), (3.0, 4)]
    assert steps[1].how == str(ADDED)


def test_steps_are_marked_and_drawn_with_right_angles():
    run = watched((ADDED,))
    steps = machine_steps(17, NODES, run)
    line = machine_line("A", steps, run)
    assert (line.x, line.y) == ([0.0, 2.6, 2.6, 3.0], [4.0, 4.0, 5.0, 5.0])
    marks = machine_marks({"A": steps, "B": [Step(0.0, 5), Step(1.5, 4)]})
    assert [(m.x, m.text) for m in marks] == [(2.6, "added to A"), (1.5, "removed from B")]


def test_each_minute_has_the_machines_at_its_end():
    run = watched((ADDED,))
    rows = with_machines(
        Table(("run",), [("A",)] * 3), {"A": run}, {"A": machine_steps(17, NODES, run)}
    )
    assert rows == Table(("run", "machines"), [("A", 4), ("A", 4), ("A", 5)])


def test_an_engine_that_knows_nothing_of_machines_has_none():
    assert machine_changes(object()) is None

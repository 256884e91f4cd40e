"""Starts that fail: told, tried again later each time, and given up where none is there."""

from sojourn.decide.plan import HERE
from sojourn.spark.host.desk.events import (
    PlacementAsked,
    ProcessorEnded,
    ProcessorReady,
    TimePassed,
)
from sojourn.spark.host.desk.instructions import StartProcessor
from sojourn.spark.host.desk.operator_desk import OperatorDesk

AT = "split"


def starts(instructions):
    return [i.processor for i in instructions if isinstance(i, StartProcessor)]


def test_what_cannot_be_started_is_missing_until_it_can():
    desk = OperatorDesk()
    first, second = starts(desk.handle(PlacementAsked(AT, {HERE: 2}), 0.0))
    desk.handle(ProcessorReady(AT, first), 0.0)
    assert starts(desk.handle(ProcessorEnded(AT, second, "no room"), 1.0)) == []
    assert (desk.processors.running, desk.processors.missing, desk.processors.hopeless) == (
        1,
        "no room",
        False,
    )
    # asking again hurries nobody
    assert starts(desk.handle(PlacementAsked(AT, {HERE: 2}), 1.05)) == []
    (again,) = starts(desk.handle(TimePassed(), 1.2))
    desk.handle(ProcessorReady(AT, again), 1.3)
    assert (desk.processors.running, desk.processors.missing) == (2, "")
    desk.handle(PlacementAsked(AT, {HERE: 3}), 2.0)
    assert desk.processors.missing == ""  # it starts, and nothing has failed yet


def test_it_is_tried_later_each_time():
    desk = OperatorDesk()
    keeps, name = starts(desk.handle(PlacementAsked(AT, {HERE: 2}), 0.0))
    desk.handle(ProcessorReady(AT, keeps), 0.0)
    now_s, gaps = 0.0, []
    for _ in range(10):
        desk.handle(ProcessorEnded(AT, name, "no room"), now_s)
        failed_s = now_s
        while not (names := starts(desk.handle(TimePassed(), now_s))):
            now_s += 0.05
        (name,) = names
        gaps.append(round(now_s - failed_s, 2))
    assert gaps == sorted(gaps)
    assert gaps[0] < 0.2
    assert 9.9 < gaps[-1] < 10.1


def test_it_is_hopeless_only_if_none_is_there():
    desk = OperatorDesk()
    names = starts(desk.handle(PlacementAsked(AT, {HERE: 8}), 0.0))
    for name in names[1:]:
        desk.handle(ProcessorEnded(AT, name, "no room"), 0.0)
        assert not desk.processors.hopeless  # the first may be ready yet
    desk.handle(ProcessorEnded(AT, names[0], "no room"), 0.0)
    assert (desk.processors.hopeless, desk.processors.failures) == (True, 8)


def test_a_system_without_room_is_given_time():
    """Memory and processes come back when others end; a function that raises stays as it is."""
    desk = OperatorDesk()
    now_s, names = 0.0, starts(desk.handle(PlacementAsked(AT, {HERE: 8}), 0.0))
    while now_s < 59.0:
        for name in names:
            desk.handle(ProcessorEnded(AT, name, "no room", starved=True), now_s)
        assert not desk.processors.hopeless
        while not (names := starts(desk.handle(TimePassed(), now_s))):
            now_s += 0.5
    for name in names:
        desk.handle(ProcessorEnded(AT, name, "no room", starved=True), 61.0)
    assert desk.processors.hopeless


def test_room_that_comes_back_begins_the_time_anew():
    desk = OperatorDesk()
    (name,) = starts(desk.handle(PlacementAsked(AT, {HERE: 1}), 0.0))
    for now_s in (0.0, 40.0, 80.0):
        desk.handle(ProcessorEnded(AT, name, "no room", starved=True), now_s)
        assert not desk.processors.hopeless
        (name,) = starts(desk.handle(TimePassed(), now_s + 20.0))
        desk.handle(ProcessorReady(AT, name), now_s + 20.0)
        (name,) = starts(desk.handle(ProcessorEnded(AT, name, "was killed"), now_s + 30.0))
    gone = ProcessorEnded(AT, name + 1, "no room", starved=True)
    assert starts(desk.handle(gone, 120.0)) == []


def test_processors_that_were_ready_and_died_are_not_starts_that_failed():
    desk = OperatorDesk()
    for name in (names := starts(desk.handle(PlacementAsked(AT, {HERE: 6}), 0.0))):
        desk.handle(ProcessorReady(AT, name), 0.0)
    again = [
        started
        for name in names
        for started in starts(desk.handle(ProcessorEnded(AT, name, ""), 1.0))
    ]
    assert len(again) == 6
    assert not desk.processors.hopeless


def test_a_set_up_without_end_is_seen():
    desk = OperatorDesk()
    (name,) = starts(desk.handle(PlacementAsked(AT, {HERE: 1}), 5.0))
    assert desk.processors.unready(305.0, 300.0) == []
    assert desk.processors.unready(305.1, 300.0) == [name]
    desk.handle(ProcessorReady(AT, name), 305.2)
    assert desk.processors.unready(999.0, 300.0) == []

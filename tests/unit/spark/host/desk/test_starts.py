"""Starts that fail: told, tried again later each time, and given up where none is there."""

from sojourn.spark.host.desk.instructions import StartProcessor
from sojourn.spark.host.desk.operator_desk import OperatorDesk


def starts(instructions):
    return [i.processor for i in instructions if isinstance(i, StartProcessor)]


def test_what_cannot_be_started_is_missing_until_it_can():
    desk = OperatorDesk()
    first, second = starts(desk.scaled(2, 0.0))
    desk.processor_ready(first, 0.0)
    assert starts(desk.processor_died(second, "no room", 1.0)) == []
    assert (desk.running, desk.missing, desk.hopeless) == (1, "no room", False)
    assert starts(desk.scaled(2, 1.05)) == []  # what is said again hurries nobody
    (again,) = starts(desk.time_passed(1.2))
    desk.processor_ready(again, 1.3)
    assert (desk.running, desk.missing) == (2, "")
    desk.scaled(3, 2.0)
    assert desk.missing == ""  # it starts, and nothing has failed yet


def test_it_is_tried_later_each_time():
    desk = OperatorDesk()
    keeps, name = starts(desk.scaled(2, 0.0))
    desk.processor_ready(keeps, 0.0)
    now_s, gaps = 0.0, []
    for _ in range(10):
        desk.processor_died(name, "no room", now_s)
        failed_s = now_s
        while not (names := starts(desk.time_passed(now_s))):
            now_s += 0.05
        (name,) = names
        gaps.append(round(now_s - failed_s, 2))
    assert gaps == sorted(gaps)
    assert gaps[0] < 0.2
    assert 9.9 < gaps[-1] < 10.1


def test_it_is_hopeless_only_if_none_is_there():
    desk = OperatorDesk()
    names = starts(desk.scaled(8, 0.0))
    for name in names[1:]:
        desk.processor_died(name, "no room", 0.0)
        assert not desk.hopeless  # the first may be ready yet
    desk.processor_died(names[0], "no room", 0.0)
    assert (desk.hopeless, desk.failures) == (True, 8)


def test_a_system_without_room_is_given_time():
    """Memory and processes come back when others end; a function that raises stays as it is."""
    desk = OperatorDesk()
    now_s, names = 0.0, starts(desk.scaled(8, 0.0))
    while now_s < 59.0:
        for name in names:
            desk.processor_starved(name)
            desk.processor_died(name, "no room", now_s)
        assert not desk.hopeless
        while not (names := starts(desk.time_passed(now_s))):
            now_s += 0.5
    for name in names:
        desk.processor_starved(name)
        desk.processor_died(name, "no room", 61.0)
    assert desk.hopeless


def test_room_that_comes_back_begins_the_time_anew():
    desk = OperatorDesk()
    (name,) = starts(desk.scaled(1, 0.0))
    for now_s in (0.0, 40.0, 80.0):
        desk.processor_starved(name)
        desk.processor_died(name, "no room", now_s)
        assert not desk.hopeless
        (name,) = starts(desk.time_passed(now_s + 20.0))
        desk.processor_ready(name, now_s + 20.0)
        (name,) = starts(desk.processor_died(name, "was killed", now_s + 30.0))
    desk.processor_starved(name + 1)  # of one that is not there


def test_processors_that_were_ready_and_died_are_not_starts_that_failed():
    desk = OperatorDesk()
    for name in (names := starts(desk.scaled(6, 0.0))):
        desk.processor_ready(name, 0.0)
    again = [
        started for name in names for started in starts(desk.processor_died(name, "", 1.0))
    ]
    assert len(again) == 6
    assert not desk.hopeless


def test_a_set_up_without_end_is_seen():
    desk = OperatorDesk()
    (name,) = starts(desk.scaled(1, 5.0))
    assert desk.unready(305.0, 300.0) == []
    assert desk.unready(305.1, 300.0) == [name]
    desk.processor_ready(name, 305.2)
    assert desk.unready(999.0, 300.0) == []

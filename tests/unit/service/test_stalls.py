"""Users are told which operator does nothing, since when, and what to look at."""

from dataclasses import replace

from sojourn.act.policy.static import Static
from sojourn.engine import health
from sojourn.measure.observation import Observation
from sojourn.service.stalls import Stalls
from sojourn.service.status import status
from supervised import begun, turned
from unit.act.policy.turns import CHAIN, seen


def look(at_s, *, done=(), backlog=9):
    """Return five seconds in which only the operators in *done* did something."""
    served = dict.fromkeys(done, 1.0)
    return seen(
        CHAIN,
        {"a": 1, "b": 1},
        at_s=at_s,
        lasted_s=5.0,
        per_s=1.0,
        served_per_s={"a": 0.0, "b": 0.0, **served},
        at_work={"a": 0, "b": 0},
        backlog={"a": backlog, "b": backlog},
    )


def test_a_stall_is_told_with_its_beginning_once_it_lasts():
    stalls = Stalls(midnight_s=14 * 3600)
    told = []
    for at_s in (105.0, 110.0, 115.0, 120.0):
        stalls.saw(look(at_s), CHAIN)
        told.append(stalls.notices)
    assert told[:2] == [(), ()]
    assert told[2] == told[3]  # the same text for as long as it lasts
    assert told[2][0].startswith(
        "a, b: no record was processed since 14:01:40 although records wait; processors are"
    )
    assert "sojourn logs" in told[2][0]


def test_it_is_over_when_a_record_is_done():
    stalls = Stalls()
    for at_s in (5.0, 10.0, 15.0):
        stalls.saw(look(at_s), CHAIN)
    stalls.saw(look(20.0, done=["a"]), CHAIN)
    assert [text.partition(":")[0] for text in stalls.notices] == ["b"]
    stalls.saw(look(25.0, done=["a", "b"]), CHAIN)
    assert stalls.notices == ()


def test_a_look_that_is_not_usable_neither_ends_nor_begins_it():
    stalls = Stalls()
    for at_s in (5.0, 10.0, 15.0):
        stalls.saw(look(at_s), CHAIN)
    stalls.saw(Observation.unusable(15.0, 20.0, "no answer"), CHAIN)
    assert len(stalls.notices) == 1


def test_the_notice_is_with_those_of_the_engine():
    """`top`, the output of the run, the JSON and Prometheus all have it from there."""
    running = begun(Static())
    turned(running, 1)
    before = health(running.engine).notices
    (episode,) = running.knowledge.episodes
    operators = {
        name: replace(operator, served=0.0, at_work=0, backlog=9)
        for name, operator in episode.observation.operators.items()
    }
    idle = replace(episode.observation, operators=operators)
    running.stalls.saw(idle, running.topology)
    running.stalls.saw(replace(idle, since_s=1.0, at_s=30.0), running.topology)
    assert len(running.health().notices) == len(before) + 1
    assert "a, b: no record was processed" in status(running).health.notices[-1]


def test_turns_of_the_loop_are_looked_at():
    running = begun(Static())
    turned(running, 3)
    assert running.stalls.notices == ()

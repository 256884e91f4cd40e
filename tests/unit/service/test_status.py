"""How a running application is: the record, and its JSON there and back."""

import json
from dataclasses import replace
from itertools import count
from types import MappingProxyType

import numpy as np
import pytest

from live_engine import LiveSimulator
from sojourn.act.policy.static import Static
from sojourn.engine import Health, InnerTopics, NodeHealth
from sojourn.errors import EngineError
from sojourn.measure.node_costs import NodeCosts
from sojourn.service.status import LatestDecisions, from_json, status, to_json
from supervised import Jump, begun, turned


class Timed(LiveSimulator):
    """Processors of `a` tell the longest service time of a look, by its number."""

    def __init__(self, longest_s):
        super().__init__()
        self._longest_s = longest_s

    def observe(self, until_s):
        pull = super().observe(until_s)
        longest_s = self._longest_s.get(round(until_s)) or 0.0
        first, second = pull.operators
        told = [replace(each, longest_service_s=longest_s) for each in first.processors]
        return replace(pull, operators=(replace(first, processors=tuple(told)), second))


def sent(told):
    """Return the JSON of a status as the other end of the socket reads it."""
    return json.loads(json.dumps(to_json(told)))


def test_the_status_tells_all_that_is_shown():
    running, decisions = begun(Jump(), most=30), LatestDecisions()
    before = status(running)
    assert before.operators["a"].service_s is None
    assert before.now == ""
    for episode in turned(running, 3):
        decisions.add(episode)
    running.scale({"b": 3})
    told = sent(status(running, decisions.told()))
    assert (told["name"], told["policy"]) == ("chain", "mean ≤ 0.2 s, 30")
    assert told["target"] == {"statistic": "mean", "seconds": 0.2}
    assert (told["deciding"], told["why"]) == ("paused", "processors were set by hand")
    assert told["allocation"] == {"a": 7, "b": 3}
    assert (told["changes"], len(told["decisions"])) == (4, 3)
    assert told["measured"]["target_statistic_s"] == told["measured"]["mean_s"] > 0
    operator = told["operators"]["a"]
    assert (operator["wanted"], operator["running"]) == (7, 7)
    assert (operator["sends_to"], operator["min_processors"]) == (["b"], 2)
    assert 0 < operator["utilisation"] < 2
    assert told["health"]["dead_letters"] == 3


def test_what_the_engine_does_not_know_was_measured(monkeypatch):
    """The number of processors that run is in the reports as well, a look ago."""
    running = begun(Static())
    turned(running, 2)
    monkeypatch.setattr(LiveSimulator, "health", lambda _engine: Health())
    assert status(running).operators["a"].running == 4


def test_where_the_last_look_failed_the_one_before_is_shown():
    looks = count()
    engine = LiveSimulator(
        raises=lambda _now_s: EngineError("busy") if next(looks) >= 2 else None
    )
    running = begun(Static(), engine=engine)
    turned(running, 4)
    told = status(running)
    assert (told.usable, told.measured.at_s) == (False, 2.0)


def test_a_wish_is_told_once_and_what_failed_each_time():
    running, decisions = begun(Jump(), active=False), LatestDecisions()
    assert [decisions.add(e) for e in turned(running, 3)] == [True, False, False]
    assert not decisions.told()[0].carried_out
    held = turned(begun(Static()), 1)[0]
    assert not decisions.add(held)
    assert decisions.add(replace(held, failure="ZeroDivisionError: by zero"))


def test_what_is_read_is_what_was_told():
    running, decisions = begun(Jump(), most=30), LatestDecisions()
    for episode in turned(running, 3):
        decisions.add(episode)
    told = sent(status(running, decisions.told(), "/s/history"))
    assert list(told) == [
        "name", "policy", "target", "max_processors", "deciding", "why", "warning", "every_s",
        "at_s", "allocation", "measured", "objective", "operators", "now", "usable", "changes",
        "decisions", "health", "bill", "history", "inner_topics", "parts", "nodes",
        "node_costs",
    ]  # fmt: skip
    assert list(told["health"]) == [
        "restarts", "replayed", "retried", "dead_letters", "nulls", "running", "trees_open",
        "trees_forgotten", "failure", "no_broker_s", "notices", "waits_for", "node_s",
    ]  # fmt: skip
    assert list(told["operators"]["a"]) == [
        "wanted", "running", "min_processors", "max_processors", "sends_to", "restarts",
        "backlog", "arrivals_per_s", "served_per_s", "service_s", "longest_service_s", "wait_s",
        "utilisation", "key_busy", "key",
    ]  # fmt: skip
    read = from_json(told)
    assert sent(read) == told
    assert (read.processors, read.history) == (sum(read.allocation.values()), "/s/history")


def test_the_longest_service_is_that_of_the_last_minute():
    """A look is often shorter than the time between two looks of a person, or two scrapes."""
    engine = Timed({1: 9.0, 2: 0.5, 30: 4.0, 60: None})
    running = begun(Static(), engine=engine)
    looks = running.turns()
    longest = {}
    for n in range(1, 101):
        next(looks)
        longest[n] = status(running).operators["a"].longest_service_s
    assert [longest[n] for n in (1, 2, 60, 61, 62, 89, 90)] == [9, 9, 9, 4, 4, 4, None]
    assert status(running).operators["b"].longest_service_s is None


def test_parts_are_told_and_read():
    told = sent(status(begun(Static())))
    told["parts"] = [{"operators": ["a", "b"], "open_records": 7}]
    (part,) = from_json(told).health.parts
    assert (part.operators, part.open_records, part.projections) == (("a", "b"), 7, ())
    told["parts"][0]["projections"] = ["c"]
    assert sent(from_json(told))["parts"] == told["parts"]


def test_nodes_are_told_and_read(monkeypatch):
    nodes = (
        NodeHealth(
            name="executor-1", cores=4.0, busy_cores=2.5, processors={"a": 2}, memory_bytes=7,
            logs="/l",
            memory_used_bytes=8, memory_limit_bytes=9, round_trip_s=0.1, clock_offset_s=0.2,
            received_bytes={"a": 1}, sent_bytes={"b": 2}, received_bytes_per_s=0.3,
            sent_bytes_per_s=0.4, warnings=("full",), kafka="no connection",
        ),
        NodeHealth(name="executor-2", reason="its agent did not start: no"),
    )  # fmt: skip
    monkeypatch.setattr(LiveSimulator, "health", lambda _engine: Health(nodes=nodes))
    told = sent(status(begun(Static())))
    assert told["nodes"][0] == {
        "name": "executor-1", "cores": 4.0, "busy_cores": 2.5, "processors": {"a": 2},
        "memory_bytes": 7,
        "machine": "", "logs": "/l", "reason": "", "memory_used_bytes": 8,
        "memory_limit_bytes": 9, "round_trip_s": 0.1, "clock_offset_s": 0.2,
        "received_bytes": {"a": 1}, "sent_bytes": {"b": 2}, "received_bytes_per_s": 0.3,
        "sent_bytes_per_s": 0.4, "warnings": ["full"],
        "kafka": "no connection",
    }  # fmt: skip
    assert from_json(told).health.nodes == nodes


def test_the_bill_is_for_the_nodes_that_there_were(monkeypatch):
    running = begun(Static(), price_per_hour=1800.0)
    turned(running, 4)
    told = sent(status(running))
    assert told["bill"] == {
        "node_hours": pytest.approx(4 / 3600), "price_per_hour": 1800.0, "cost": 2.0
    }  # fmt: skip
    assert sent(from_json(told)) == told
    monkeypatch.setattr(LiveSimulator, "health", lambda _engine: Health(node_s=7200.0))
    assert running.bill.cost == 3600.0
    assert status(begun(Static())).bill is None


def test_what_nodes_cost_is_told_and_read(monkeypatch):
    costs = NodeCosts(adding_s=4.8, removing_s=1.1)
    monkeypatch.setattr(LiveSimulator, "health", lambda _engine: Health(node_costs=costs))
    told = sent(status(begun(Static())))
    assert told["node_costs"] == {"adding_s": 4.8, "removing_s": 1.1}
    assert from_json(told).health.node_costs == costs


def test_an_application_of_another_version_is_read_as_far_as_it_tells():
    told = sent(status(begun(Static())))
    told |= {"new": 1}
    told["operators"]["a"] |= {"new": {"of": ["more"]}}
    for name in ("bill", "inner_topics", "parts", "nodes", "node_costs", "warning"):
        del told[name]
    for name in ("notices", "no_broker_s"):
        del told["health"][name]
    read = from_json(told)
    assert (read.warning, read.health.notices, read.health.nodes) == ("", (), ())
    assert read.health.inner_topics.records is None
    assert read.health.dead_letters == 3


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"name": None}, r"Expected `str`, got `null` - at `\$.name`"),
        ({"operators": {"a": {"backlog": "many"}}}, "Expected `int | null`, got `str`"),
        ({"target": {"statistic": "p97", "seconds": 1.0}}, "'p97' cannot be a target"),
        ({"health": 7}, "its status cannot be read"),
    ],
)
def test_a_status_that_cannot_be_read_is_refused_with_the_way_out(wrong, says):
    told = sent(status(begun(Static()))) | wrong
    with pytest.raises(EngineError, match=says) as refused:
        from_json(told)
    assert "use the version of sojourn that runs it" in str(refused.value)


def test_a_status_without_a_field_that_all_versions_have_is_refused():
    told = sent(status(begun(Static())))
    del told["allocation"]
    with pytest.raises(EngineError, match="missing required field `allocation`"):
        from_json(told)


def test_numbers_and_mappings_of_any_engine_are_sent(monkeypatch):
    running = MappingProxyType({"a": np.int64(2)})
    health = Health(running=running, no_broker_s=np.float64(0.5), inner_topics=InnerTopics())
    monkeypatch.setattr(LiveSimulator, "health", lambda _engine: health)
    told = sent(status(begun(Static())))
    assert told["operators"]["a"]["running"] == 2
    assert told["health"]["no_broker_s"] == 0.5


def test_what_was_never_seen_is_not_known():
    measured = status(begun(Static())).measured
    assert (measured.mean_s, measured.percentiles_s["p95"]) == (None, None)

"""How a running application is: the record, and its JSON there and back."""

import json
from dataclasses import replace
from itertools import count

import pytest

from live_engine import LiveSimulator
from sojourn.act.policy.static import Static
from sojourn.engine import Health, NodeHealth
from sojourn.errors import EngineError
from sojourn.measure.node_costs import NodeCosts
from sojourn.service.status import LatestDecisions, from_json, status, to_json
from supervised import Jump, begun, turned


def test_the_status_tells_all_that_is_shown():
    running, decisions = begun(Jump(), most=30), LatestDecisions()
    before = status(running)
    assert before.operators["a"].service_s is None
    assert before.now == ""
    for episode in turned(running, 3):
        decisions.add(episode)
    running.scale({"b": 3})
    told = to_json(status(running, decisions.told()))
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
    assert json.loads(json.dumps(told)) == told


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
    told = json.loads(json.dumps(to_json(status(running, decisions.told(), "/s/history"))))
    assert list(told) == [
        "name", "policy", "target", "max_processors", "deciding", "why", "warning", "every_s",
        "at_s", "allocation", "measured", "operators", "now", "usable", "changes", "decisions",
        "health", "bill", "inner_topics", "parts", "nodes", "node_costs", "history",
    ]  # fmt: skip
    assert list(told["operators"]["a"]) == [
        "wanted", "running", "min_processors", "max_processors", "sends_to", "restarts",
        "backlog", "arrivals_per_s", "served_per_s", "service_s", "wait_s", "utilisation",
        "key_busy", "key",
    ]  # fmt: skip
    assert to_json(from_json(told)) == told
    read = from_json(told)
    assert (read.processors, read.history) == (sum(read.allocation.values()), "/s/history")


def test_parts_are_told_and_read():
    told = to_json(status(begun(Static())))
    told["parts"] = [{"operators": ["a", "b"], "open_records": 7}]
    (part,) = from_json(json.loads(json.dumps(told))).health.parts
    assert (part.operators, part.open_records, part.projections) == (("a", "b"), 7, ())
    told["parts"][0]["projections"] = ["c"]
    assert to_json(from_json(told))["parts"] == told["parts"]


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
    told = json.loads(json.dumps(to_json(status(begun(Static())))))
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
    told = to_json(status(running))
    assert told["bill"] == {
        "node_hours": pytest.approx(4 / 3600), "price_per_hour": 1800.0, "cost": 2.0
    }  # fmt: skip
    assert to_json(from_json(told)) == told
    monkeypatch.setattr(LiveSimulator, "health", lambda _engine: Health(node_s=7200.0))
    assert running.bill.cost == 3600.0
    assert status(begun(Static())).bill is None


def test_what_nodes_cost_is_told_and_read(monkeypatch):
    costs = NodeCosts(adding_s=4.8, removing_s=1.1)
    monkeypatch.setattr(LiveSimulator, "health", lambda _engine: Health(node_costs=costs))
    told = json.loads(json.dumps(to_json(status(begun(Static())))))
    assert told["node_costs"] == {"adding_s": 4.8, "removing_s": 1.1}
    assert from_json(told).health.node_costs == costs


def test_an_application_of_another_version_is_read_as_far_as_it_tells():
    told = to_json(status(begun(Static())))
    told |= {"new": 1}
    for name in ("bill", "inner_topics", "parts", "nodes", "node_costs", "warning"):
        del told[name]
    for name in ("notices", "no_broker_s"):
        del told["health"][name]
    read = from_json(told)
    assert (read.warning, read.health.notices, read.health.held_records) == ("", (), None)
    assert read.health.dead_letters == 3


def test_what_was_never_seen_is_not_known():
    measured = status(begun(Static())).measured
    assert (measured.mean_s, measured.percentiles_s["p95"]) == (None, None)

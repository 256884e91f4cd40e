"""What Prometheus reads, compared with what the status says."""

import re
import urllib.request
from dataclasses import replace
from pathlib import Path

import yaml
from prometheus_client.parser import text_string_to_metric_families

from sojourn.decide.target import Target
from sojourn.engine import Health, InnerTopics, NodeHealth
from sojourn.measure.node_costs import Bill, NodeCosts
from sojourn.report.prometheus import serve_metrics
from sojourn.service.status import Measured, ObjectiveStatus, OperatorStatus, Status

ALERTS = Path(__file__).parents[3] / "examples" / "prometheus" / "alerts.yaml"

OPERATOR = OperatorStatus(
    running=3, wanted=4, arrivals_per_s=12_345_678.25, served_per_s=2.0, service_s=0.5,
    longest_service_s=4.5, backlog=0, restarts=2,
)  # fmt: skip
STATUS = Status(
    name="vld", policy="drs", target=Target("p95", 3.0), max_processors=25, deciding="active",
    why="", every_s=1.0, at_s=9.0, allocation={"extract": 4}, now="", usable=True, changes=3,
    measured=Measured(at_s=9.0, arrivals_per_s=3.5, mean_s=1.0, percentiles_s={"p95": 2.0}),
    operators={"extract": OPERATOR, 'odd \\ "name"': replace(OPERATOR, wait_s=1e-7)},
    decisions=(),
    health=Health(
        dead_letters=3, nulls=2, retried=1, inner_topics=InnerTopics(records=5, bytes=1 << 40),
    ),
)  # fmt: skip


def scraped(status):
    with (
        serve_metrics(0, lambda: status) as server,
        urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/metrics") as answered,
    ):
        return answered.read().decode()


def samples(status):
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(scraped(status))
        for sample in family.samples
    }


def test_names_labels_and_values_are_those_of_the_status():
    told = samples(STATUS)
    for name, *labels, value in (
        ("changes_total", 3),
        ("processors", "extract", 3),
        ("processors_wanted", "extract", 4),
        ("arrivals_per_second", "extract", 12_345_678.25),
        ("longest_service_seconds", "extract", 4.5),
        ("wait_seconds", 'odd \\ "name"', 1e-7),
        ("restarts_total", "extract", 2),
        ("roots_per_second", 3.5),
        ("time_seconds", "mean", 1.0),
        ("time_seconds", "p95", 2.0),
        ("target_seconds", "p95", 3.0),
        ("deciding", 1),
        ("processors_most", 25),
        ("target_reachable", 1),
        ("no_broker_seconds", 0.0),
        ("inner_topics_bytes", 1 << 40),
        ("dead_letters_total", 3),
        ("nulls_total", 2),
        ("replayed_total", 0),
        ("retried_total", 1),
    ):
        assert told[f"sojourn_{name}", "vld", *labels] == value
    assert ("sojourn_wait_seconds", "vld", "extract") not in told
    assert not any(name == "sojourn_utilisation_ratio" for name, *_ in told)


def test_nodes_of_a_cluster_have_metrics_of_their_own():
    nodes = (
        NodeHealth(
            name="executor-1", cores=4.0, busy_cores=2.5, processors={"a": 2},
            memory_bytes=1 << 30,
            memory_used_bytes=3 << 30, memory_limit_bytes=4 << 30, round_trip_s=0.001,
            clock_offset_s=-0.5, received_bytes={"lines": 70}, sent_bytes={"words": 30},
        ),
        NodeHealth(name="executor-2", reason="its agent did not start: no"),
    )  # fmt: skip
    told = samples(replace(STATUS, health=Health(nodes=nodes)))
    assert {(*labels, value) for labels, value in told.items() if "_node_" in labels[0]} == {
        ("sojourn_node_usable", "vld", "executor-1", 1),
        ("sojourn_node_usable", "vld", "executor-2", 0),
        ("sojourn_node_cores", "vld", "executor-1", 4),
        ("sojourn_node_busy_cores", "vld", "executor-1", 2.5),
        ("sojourn_node_memory_bytes", "vld", "executor-1", 1 << 30),
        ("sojourn_node_memory_bytes", "vld", "executor-2", 0),
        ("sojourn_node_processors", "vld", "executor-1", "a", 2),
        ("sojourn_node_memory_used_bytes", "vld", "executor-1", 3 << 30),
        ("sojourn_node_memory_limit_bytes", "vld", "executor-1", 4 << 30),
        ("sojourn_node_round_trip_seconds", "vld", "executor-1", 0.001),
        ("sojourn_node_clock_offset_seconds", "vld", "executor-1", -0.5),
        ("sojourn_node_bytes_total", "vld", "driver", "lines", "executor-1", 70),
        ("sojourn_node_bytes_total", "vld", "executor-1", "words", "driver", 30),
    }
    assert not any("_node_" in name for name, *_ in samples(STATUS))


def test_a_bill_has_metrics_if_there_is_one():
    told = samples(replace(STATUS, bill=Bill.of(7200.0, 0.5)))
    assert told["sojourn_node_seconds_total", "vld"] == 7200
    assert told["sojourn_cost_total", "vld"] == 1
    assert not any("cost" in name for name, *_ in samples(STATUS))


def test_what_nodes_cost_to_move_has_metrics_once_it_is_known():
    costs = NodeCosts(adding_s=4.8)
    told = samples(replace(STATUS, health=Health(node_costs=costs)))
    assert told["sojourn_node_adding_seconds", "vld"] == 4.8
    assert ("sojourn_node_removing_seconds", "vld") not in told


def test_what_is_counted_is_a_counter_and_all_else_a_gauge():
    kinds = {f.name: f.type for f in text_string_to_metric_families(scraped(STATUS))}
    counted = {name.removeprefix("sojourn_") for name, k in kinds.items() if k == "counter"}
    assert counted == {"changes", "dead_letters", "nulls", "replayed", "restarts", "retried"}
    assert set(kinds.values()) == {"counter", "gauge"}


def test_before_it_has_started_nothing_is_known():
    assert scraped(None) == ""


OBJECTIVE = ObjectiveStatus(
    slice_s=60.0, kept=0.99, judged=500, missed=6, excused={"a batch ended": 2}, level=0.2,
    left=9, burn_rates={"1h": 0.0, "6h": 1.6}, born=390_000, in_time=386_000,
)  # fmt: skip


def test_the_error_budget_is_told():
    told = samples(replace(STATUS, objective=OBJECTIVE))
    for name, *labels, value in (
        ("slices_judged_total", 500),
        ("slices_missed_total", 6),
        ("slices_excused_total", "a batch ended", 2),
        ("slices_left", 9),
        ("roots_born_total", 390_000),
        ("roots_in_time_total", 386_000),
        ("burn_rate", "1h", 0.0),
        ("burn_rate", "6h", 1.6),
        ("objective_ratio", 0.99),
        ("level_ratio", 0.2),
    ):
        assert told[f"sojourn_{name}", "vld", *labels] == value
    assert not any("slices" in name for name, *_ in samples(STATUS))


def test_alerts_are_on_metrics_that_there_are():
    told = {name for name, *_ in samples(replace(STATUS, objective=OBJECTIVE))}
    rules = [
        r for group in yaml.safe_load(ALERTS.read_text())["groups"] for r in group["rules"]
    ]
    recorded = {rule["record"] for rule in rules if "record" in rule}
    used = {
        name for r in rules for name in re.findall(r"[a-z:]*sojourn_[a-z_:0-9]+", r["expr"])
    }
    assert recorded <= used <= told | recorded
    assert len([rule for rule in rules if "alert" in rule]) == 5

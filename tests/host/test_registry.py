"""A schema registry that does not answer for a while: records wait for it, and none fails."""

import json
import threading
import time

import pytest

import sojourn as sj
from host.relaying import route_of
from schema_registry import schema_registry
from sojourn.app.codec.avro import AvroCodec
from sojourn.app.operator import OnError
from sojourn.app.schema import parse_schema
from sojourn.app.stream import Stream

pytestmark = pytest.mark.timeout(120)

APPLICATION = "unit.spark.host.avro_application:app"
ON_ERROR = OnError(then="dead_letter")
OLD = {"type": "record", "name": "r", "fields": [{"name": "line", "type": "string"}]}
NEW = OLD | {"doc": "another version"}
DEADLINE_S = 60


class Registries:
    """A registry that can be stopped and started again."""

    def __init__(self):
        self._open()
        self.new = self.server.register("lines-value", NEW)
        self.old = self.server.register("lines-value", OLD)

    def _open(self, follows=None):
        self._running = schema_registry(follows)
        self.server = self._running.__enter__()

    def stop(self):
        self._running.__exit__(None, None, None)
        self._running = None

    def start(self):
        self._open(self.server)

    def close(self):
        if self._running is not None:
            self.stop()


@pytest.fixture
def registry(monkeypatch):
    registries = Registries()
    monkeypatch.setenv("TEST_SCHEMA_REGISTRY", registries.server.url)
    yield registries
    registries.close()


def message(number, line):
    """Return a line as a producer writes it with the schema of that id."""
    body = line.encode()
    return b"\0" + number.to_bytes(4, "big") + bytes([2 * len(body)]) + body


def form(registry, patience_s=300.0):
    return sj.Avro(registry=registry.server.url, subject="lines-value", patience_s=patience_s)


def by_line(registry, patience_s=300.0):
    """Return what of a route says that the lines, in Avro, are read by key."""
    schema = parse_schema("line string")
    lines = Stream(
        name="lines", columns=("line",), schema=schema, format=form(registry, patience_s)
    )
    return {"lines": (("keyed", lines.by("line")),)}


def written(rows, topic="words-topic"):
    return [json.loads(row["value"])["line"] for row in rows if row["topic"] == topic]


def batch(query, *values):
    """Run a batch in a thread; return it, and the rows that will come of it."""
    rows = []
    running = threading.Thread(target=lambda: rows.extend(query.results(*values)))
    running.start()
    return running, rows


def awaited(query, waits):
    """Return the reason that the host reports for records that wait, as *waits* finds it."""
    until_s = time.monotonic() + DEADLINE_S
    while time.monotonic() < until_s:
        query.tally()
        if reasons := [reason for tally in query.told if (reason := waits(tally))]:
            return reasons[-1]
        time.sleep(0.01)
    raise TimeoutError("nobody waits")


def test_a_record_waits_at_its_processor_until_the_registry_answers(host, registry):
    query = host("copied", application=APPLICATION, on_error=ON_ERROR, limit_s=12.0)
    assert written(query.results(message(registry.old, "a"))) == ["a"]
    registry.stop()
    running, rows = batch(query, message(registry.old, "b"), message(registry.new, "c"))
    reason = awaited(query, lambda tally: tally.operators["copied"].state.waits)
    assert reason.startswith("the schema registry at 127.0.0.1:")
    registry.start()
    running.join(DEADLINE_S)
    assert sorted(written(rows)) == ["b", "c"]
    assert [row for row in rows if row["topic"] == "dead-topic"] == []


def test_a_relay_waits_for_the_key_of_a_record(host, registry):
    route = route_of("keyed", keyed=by_line(registry))
    query = host("keyed", application=APPLICATION, on_error=ON_ERROR, route=route)
    assert written(query.results(message(registry.old, "a"))) == ["a"]
    registry.stop()
    running, rows = batch(query, message(registry.new, "b"))
    reason = awaited(query, lambda tally: tally.state.waits)
    assert "does not answer" in reason
    assert "waits" not in reason
    registry.start()
    running.join(DEADLINE_S)
    assert written(rows) == ["b"]
    assert query.state().waits == ""


def test_when_patience_ends_the_record_fails_as_the_operator_says(host, registry, monkeypatch):
    monkeypatch.setenv("TEST_PATIENCE_S", "0.1")
    query = host("copied", application=APPLICATION, on_error=ON_ERROR)
    registry.stop()
    rows = query.results(message(registry.old, "a"), message(registry.new, "b"))
    assert written(rows) == ["a"]
    (letter,) = [row for row in rows if row["topic"] == "dead-topic"]
    assert any("does not answer" in str(header["value"]) for header in letter["headers"])


def test_a_task_that_begins_meanwhile_waits_before_it_reads(host, registry):
    """Its codec needs the latest schema; Spark has started another Python process for it."""
    query = host("keyed", application=APPLICATION, on_error=ON_ERROR)
    registry.stop()
    # of another patience, so that no codec is known yet
    query.route = route_of("keyed", keyed=by_line(registry, 299.0))
    running, rows = batch(query, message(registry.old, "a"))
    awaited(query, lambda tally: tally.state.waits)
    registry.start()
    running.join(DEADLINE_S)
    assert written(rows) == ["a"]


def test_a_codec_is_made_with_the_registry_that_runs_again(registry):
    registry.stop()
    registry.start()
    made = AvroCodec(parse_schema("line string"), "lines", form(registry))
    assert made.decode(message(registry.new, "a")) == ("a",)

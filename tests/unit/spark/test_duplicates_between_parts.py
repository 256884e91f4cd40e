"""What parts write to streams between them, and what the parts behind count of it.

The layout, the rows of relays and the ledger are the real ones; Kafka is a list, and a part
that fails writes its batch again.
"""

import pytest

import sojourn as sj
from sojourn.spark.driver.layout import Layout
from sojourn.spark.host.batch.cut import CutId
from sojourn.spark.host.batch.ledger import Ledger
from sojourn.spark.host.desk.part_graph import as_record
from sojourn.spark.task.rows import Rows
from sojourn.spark.wire.processor import OutputRecord
from sojourn.spark.wire.record import Record, Root
from sojourn.spark.wire.relay import Results
from unit.spark.host.spark_stand_in import Disk

KEY = b"key of the application"
WINDOW = 10
"""Of ids that producers gave: much shorter than what is repeated here."""


def shop():
    """Return two parts that write one stream, and one that counts it."""
    app = sj.App("shop", id_window=WINDOW)
    orders = app.source("orders", schema="user string")
    alerts = app.stream("alerts", schema="user string", durable=True)

    @app.operator(reads=orders, emits=alerts)
    def rules(user):
        yield (user,)

    @app.operator(reads=orders, emits=alerts)
    def model(user):
        yield (user,)

    @app.operator(reads=alerts.by("user"), state={"n": 0})
    def count(state, user):  # noqa: ARG001 - every column is an argument
        state["n"] += 1

    return app


def chain():
    """Return three parts in a row, of which the last one counts."""
    app = sj.App("chain", id_window=WINDOW)
    orders = app.source("orders", schema="user string")

    @app.operator(reads=orders, emits="user string", durable=True)
    def first(user):
        yield (user,)

    @app.operator(reads=first, emits="user string", durable=True)
    def second(user):
        yield (user,)

    @app.operator(reads=second.by("user"), state={"n": 0})
    def count(state, user):  # noqa: ARG001 - every column is an argument
        state["n"] += 1

    return app


class Parts:
    """The parts of an application, each with rows and a ledger; topics have one partition."""

    def __init__(self, app, key=KEY):
        layout = Layout(app, f"{app.name}:app")
        topics = {app.topic(name): 1 for name in app.streams} | dict.fromkeys(layout.topics, 1)
        self.app, self.topics = app, {topic: [] for topic in topics}
        self.rows = {
            part: Rows(
                layout.route(
                    part,
                    trace_per_s=0,
                    most_bytes=1 << 20,
                    marks=dict.fromkeys(topics, "m"),
                    partitions=topics,
                    signing_key=key,
                )
            )
            for part in layout.parts
        }
        self.ledgers = {}
        for part in layout.parts:
            self.ledgers[part] = Ledger(Disk(), id_window=app.id_window)
            self.ledgers[part].relay_came(1, CutId(0, 1))

    def takes(self, part, stream, offset):
        """Return the record of a stream if a part takes it."""
        topic = self.app.topic(stream)
        came = self.rows[part].came(
            {
                "topic": topic,
                "partition": 0,
                "offset": offset,
                "key": None,
                "timestamp_us": 0,
                **self.topics[topic][offset],
            }
        )
        root = Root(came.partition, came.offset)
        return came.record if self.ledgers[part].takes(1, root, came.provenance) else None

    def writes(self, part, record, stream, written_to, *, floor=0):
        """Let a part write what comes of a record at an offset of *stream*."""
        offset, stream = stream
        child = as_record(record, part, 0, OutputRecord(written_to, b'{"user":"ada"}'), 1.0)
        root = Root((self.app.topic(stream), 0), offset)
        for row in self.rows[part].left(Results([(child, root, floor)])):
            self.topics[row["topic"]].append({k: row[k] for k in ("value", "headers")})

    def order(self, offset):
        """Return the record of the source at an offset."""
        topic = self.app.topic("orders")
        name = f"{topic}@m/0/{offset}"
        return Record(name, b"{}", "orders", root=name, position=f"{topic}/0/{offset}")

    def counted(self, part, stream):
        """Return how many records of a stream a part takes."""
        written = self.topics[self.app.topic(stream)]
        taken = [self.takes(part, stream, offset) for offset in range(len(written))]
        return sum(record is not None for record in taken)


def test_all_that_two_parts_write_to_a_stream_counts():
    parts = Parts(shop())
    for offset in range(1000):  # quick: in ten batches that were committed
        parts.writes(
            "rules",
            parts.order(offset),
            (offset, "orders"),
            "alerts",
            floor=offset // 100 * 100,
        )
    for offset in range(100):  # slow: still in its first
        parts.writes("model", parts.order(offset), (offset, "orders"), "alerts")
    assert parts.counted("count", "alerts") == 1100


def test_what_either_of_two_writers_repeats_counts_once():
    parts = Parts(shop())
    for part in ("rules", "model", "rules", "model"):
        for offset in range(50):
            parts.writes(part, parts.order(offset), (offset, "orders"), "alerts")
    assert parts.counted("count", "alerts") == 100


def test_what_a_part_repeats_counts_once_behind_another_part_however_much_it_is():
    parts = Parts(chain())
    for _ in range(2):  # its batch was not committed
        for offset in range(100):
            parts.writes("first", parts.order(offset), (offset, "orders"), "first")
    for offset in range(200):
        record = parts.takes("second", "first", offset)
        if record is not None:
            parts.writes("second", record, (offset, "first"), "second")
    assert parts.counted("count", "second") == 100


def test_a_forged_header_silences_nothing():
    parts = Parts(chain())
    for offset in range(10):
        parts.writes("first", parts.order(offset), (offset, "orders"), "first")
    topic, source, far = (*map(parts.app.topic, ("first", "orders")), 2**62)
    value = f"first {source}@m/0/{far} {far}".encode()
    for forged in (value, b"%b %b" % (value, b"0" * 32)):
        told = {"sojourn-id": b"x", "sojourn-input": forged}
        headers = [{"key": name, "value": content} for name, content in told.items()]
        parts.topics[topic].append({"value": b"{}", "headers": headers})
    for offset in range(10, 1010):
        parts.writes("first", parts.order(offset), (offset, "orders"), "first")
    assert parts.counted("second", "first") == 1010 + 1  # equal ids of others count once


@pytest.mark.parametrize("app", [shop, chain])
def test_parts_drop_duplicates_where_a_state_follows_and_only_of_what_parts_write(app):
    parts = Parts(app())
    drops = {part: rows._route.deduplicates for part, rows in parts.rows.items()}  # noqa: SLF001
    expected = {
        "shop": {"rules": set(), "model": set(), "count": {"shop.alerts"}},
        "chain": {"first": set(), "second": {"chain.first"}, "count": {"chain.second"}},
    }
    assert drops == expected[parts.app.name]

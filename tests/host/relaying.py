"""The batches of a part's query as Spark runs them, without Spark: records in, rows out."""

import time
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from sojourn.app.schema import parse_schema
from sojourn.app.stream import Stream
from sojourn.spark.task.relay import relay
from sojourn.spark.task.rows import Route
from sojourn.spark.wire.relay import RelayHello

ROW = pa.struct(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp_us", pa.int64()),
    ]
)
BORN = datetime(2026, 1, 1, tzinfo=UTC)
BORN_US = int(BORN.timestamp() * 1e6)
DEADLINE_S = 60


def batch_of(offset, value, *, topic="lines", headers=None, key=None, timestamp_us=BORN_US):
    """Return a record as Spark brings it, with its marker."""
    row = {
        "key": key,
        "value": value,
        "headers": headers,
        "topic": topic,
        "partition": 3,
        "offset": offset,
        "timestamp_us": timestamp_us,
    }
    return pa.RecordBatch.from_arrays([pa.array([row, None], ROW)], ["record"])


LINES = Stream(name="lines", columns=("line",), schema=parse_schema("line string"))


def route_of(*operators, **fields):
    """Return the route of a part whose operators read lines."""
    told = {
        "part": operators[0],
        "operators": operators,
        "reads": {"lines": "lines"},
        "writes": dict.fromkeys(operators, "words-topic"),
        "dead_letters": "dead-topic",
    }
    return Route(**(told | fields))


def by_line(*operators):
    """Return what of a route says that operators read lines by key."""
    return {"lines": tuple((operator, LINES.by("line")) for operator in operators)}


class Query:
    """The query of a part: each batch goes on where the one before has ended.

    *told* is what its host reported while batches were waited for. Tasks wait *patience_s*
    for a host that is not there.
    """

    def __init__(self, controller, address, route, *, run="run", ends=""):
        self.patience_s = 20.0
        self.controller, self.route, self.run, self.ends = controller, route, run, ends
        self.address = address
        self.batch = self.offset = 0
        self.told = []

    def results(self, *values, route=None, **fields):
        """Return the rows that come of one batch, which ends when nothing is open."""
        came = [self.row(value, **fields) for value in values]
        return self.rows_of(came, route=route)

    def row(self, value, **fields):
        """Return a record at the next offset."""
        self.offset += 1
        return batch_of(self.offset - 1, value, **fields)

    def rows_of(self, came, *, route=None, wait=True, pause=None):
        """Return the rows of one batch; one that does not *wait* ends with records open.

        After the first of what comes, Spark may *pause*.
        """
        over = []

        def brought():
            yield from came
            if wait:
                self.await_done(over)

        route = route or self.route
        passed = relay(self.address, route, DEADLINE_S, self.ends, patience_s=self.patience_s)(
            brought()
        )
        hello = RelayHello(self.run, self.batch, self.batch)
        with pytest.MonkeyPatch.context() as patch:
            # Spark is not there to say which batch it is
            patch.setattr("sojourn.spark.task.relay._hello", lambda: hello)
            try:
                rows = next(passed).to_pylist() if pause is not None else []
                if pause is not None:
                    pause()
                rows += [row for batch in passed for row in batch.to_pylist()]
            finally:
                over.append(True)
        self.batch += 1
        return rows

    def await_done(self, over=()):
        """Return when the host has taken all, and nothing is open."""
        until_s = time.monotonic() + DEADLINE_S
        while time.monotonic() < until_s:
            if (tally := self.tally(over)) is None:
                return
            state = tally.state
            taken = state.positions.get("lines", {}).get(3, 0)
            if state.batch == self.batch and taken >= self.offset and not state.open:
                return
            time.sleep(0.005)

    def state(self):
        """Return how the part is, as its host reports it."""
        return self.tally().state

    def tally(self, over=()):
        """Return what the host counts next; None if the batch is over before."""
        self._taken()
        until_s = time.monotonic() + DEADLINE_S
        while time.monotonic() < until_s:
            if over:
                return None
            self.controller.ask()
            for _ in range(20):
                if told := self._taken():
                    return told[-1]
                time.sleep(0.005)
        raise TimeoutError("the host does not report")

    def _taken(self):
        taken = [tally for some in self.controller.tallies().values() for tally in some]
        self.told += taken
        return taken


def headers_of(row):
    return {header["key"]: header["value"] for header in row["headers"]}

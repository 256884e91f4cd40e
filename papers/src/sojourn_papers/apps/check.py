"""An application on Spark: its results, against those worked out offline."""

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from time import monotonic

from sojourn.app.application import App
from sojourn.app.codec import codec_of
from sojourn.decide.plan import Plan
from sojourn.engine import Progress
from sojourn.errors import BadInput
from sojourn.files.private_files import make_folder
from sojourn.service.first_plan import first_topology
from sojourn.spark.driver.settings import SparkSettings
from sojourn.spark.driver.spark_engine import SparkEngine
from sojourn_papers.apps.catalogue import Answers, Entry, Record, Tables
from sojourn_papers.apps.database import DATABASE
from sojourn_papers.apps.topic_records import TopicRecord, topic_records

_EVERY_S = 1.0
# Results that are missing are waited for until so long after the last that came.
_PATIENCE_S = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """How results differ from those worked out offline.

    A result belongs to the source record that it is of. *repeated* results came more than once,
    with the same id and value: an application may process records again after a failure. With
    the same id and another value they are *wrong*. *rows* are those that tables should have, in
    a database or by what sinks tell, *rows_found* how many of them are there, and *tables*
    those that differ.
    """

    sent: int
    expected: int
    missing: int = 0
    wrong: int = 0
    repeated: int = 0
    rows: int = 0
    rows_found: int = 0
    tables: tuple[str, ...] = ()

    @property
    def exact(self) -> bool:
        """Whether every result is there, and no other."""
        return not (self.missing or self.wrong or self.tables)

    def __str__(self) -> str:
        found = self.expected - self.missing
        counts = f"{self.sent} records sent, {found} of {self.expected} expected results found"
        counts += f", {self.missing} missing, {self.wrong} wrong, {self.repeated} repeated"
        rows = f"{self.rows_found} of {self.rows} expected rows found in tables"
        differs = [f"table {name} differs" for name in self.tables]
        return "; ".join([counts, *([rows] if self.rows else []), *differs])


def check(
    entry: Entry,
    *,
    per_s: float,
    lasts_s: float,
    state: Path,
    database: str = "",
    progress: Progress = lambda _line: None,
) -> Verdict:
    """Run the application with samples on Spark until all results are there; compare them.

    If it writes to a database, *database* must have none of its rows; the default is an SQLite
    file in *state*.
    """
    app = entry.app
    rate = per_s / len(app.samples)
    settings = SparkSettings(
        state=state,
        batch_s=10.0,
        load=dict.fromkeys(app.samples, ((0.0, rate), (lasts_s, rate))),
    )
    topology = first_topology(app, dict.fromkeys(app.sources, rate))
    allocation = {operator.name: operator.min_processors for operator in topology.operators}
    make_folder(state)
    database = database or str(state / "database.sqlite")
    if entry.stored is not None and any(entry.stored(database).values()):
        raise BadInput("the database has rows of the application; name one that is empty")
    compare = comparison(entry, database)
    with writes_to(database), SparkEngine(app, entry.address, settings, progress) as engine:
        engine.start(topology, Plan.here(allocation))
        found, came_s = Verdict(sent=0, expected=0), monotonic()
        while monotonic() < came_s + _PATIENCE_S:
            engine.observe(engine.now_s + _EVERY_S)
            before, found = found, compare(engine.clients)
            progress(str(found))
            if engine.now_s > lasts_s and found.exact:
                break
            if found != before:
                came_s = monotonic()
        engine.drain()
        return compare(engine.clients)


@contextmanager
def writes_to(database: str) -> Iterator[None]:
    """Let processors that start meanwhile write to *database*."""
    before = os.environ.get(DATABASE)
    os.environ[DATABASE] = database
    try:
        yield
    finally:
        os.environ.pop(DATABASE)
        if before is not None:
            os.environ[DATABASE] = before


def comparison(entry: Entry, database: str) -> Callable[[Mapping[str, str]], Verdict]:
    """Return what compares the results of now with those of all records sent until now.

    It takes the settings of a Kafka client. The answer to a record is worked out once, however
    often it is called.
    """
    answers: Answers = cache(lambda source, record: tuple(entry.answers(source, record)))

    def compare(clients: Mapping[str, str]) -> Verdict:
        app = entry.app
        sent = {
            source: {each.root: each.record for each in read_stream(clients, app, source)}
            for source in app.sources
        }
        results = {
            name: read_stream(clients, app, sink.stream.name, topic=app.topic(name))
            for name, sink in app.sinks.items()
        }
        verdict = compared(answers, sent, results)
        if entry.rows is None:
            return verdict
        due, found = entry.rows(_pairs(sent)), _tables(entry, database, results)
        return replace(
            verdict,
            rows=sum(map(len, due.values())),
            rows_found=sum(len(due[name] & found.get(name, frozenset())) for name in due),
            tables=tuple(name for name in due if due[name] != found.get(name)),
        )

    return compare


def _tables(
    entry: Entry, database: str, results: Mapping[str, Sequence[TopicRecord]]
) -> Tables:
    """Return the tables as they are, in the database and by what sinks tell."""
    stored = {} if entry.stored is None else entry.stored(database)
    records = {sink: [each.record for each in came] for sink, came in results.items()}
    return {**stored, **({} if entry.told is None else entry.told(records))}


def read_stream(
    clients: Mapping[str, str], app: App, stream: str, *, topic: str | None = None
) -> list[TopicRecord]:
    """Return the records of a stream that are in its topic, or in another *topic*, now."""
    codec = codec_of(app.streams[stream])  # an application here gives all types
    return list(topic_records(clients, topic or app.topic(stream), codec))


def _pairs(sent: Mapping[str, Mapping[str, Record]]) -> Iterator[tuple[str, Record]]:
    for source, records in sent.items():
        for record in records.values():
            yield source, record


def compared(
    answers: Answers,
    sent: Mapping[str, Mapping[str, Record]],
    results: Mapping[str, Sequence[TopicRecord]],
) -> Verdict:
    """Return how *results* by sink differ from the *answers* to what was *sent*.

    *sent* are the records of each source by their id. A sink without an answer is not compared.
    """
    due: Counter[tuple[str, str, str]] = Counter()
    for source, records in sent.items():
        for root, record in records.items():
            due.update((root, sink, repr(result)) for sink, result in answers(source, record))
    sinks = {sink for _, sink, _ in due}
    once = {
        (each.root, sink, repr(each.record), each.identity)
        for sink in sinks
        for each in results[sink]
    }
    came = Counter((root, sink, result) for root, sink, result, _ in once)
    return Verdict(
        sent=sum(map(len, sent.values())),
        expected=due.total(),
        missing=(due - came).total(),
        wrong=(came - due).total(),
        repeated=sum(len(results[sink]) for sink in sinks) - len(once),
    )

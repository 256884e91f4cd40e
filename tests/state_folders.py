"""State folders as a host and Spark leave them: batches, cuts, and the states of keys."""

from contextlib import closing
from itertools import count

import sojourn as sj
from sojourn.app.reminder import reminders_of
from sojourn.spark.driver.state.checkpoints import Checkpoints
from sojourn.spark.host.batch.cut import Cut, CutId
from sojourn.spark.host.batch.cut_store import CutFiles
from sojourn.spark.host.state.keyed_state import MergeState
from sojourn.spark.processor.state_codec import StateCodec


def counting(state=None, *, schema="word string", by=("word",)):
    """Return an application with an operator `count` that keeps a state for each key."""
    app = sj.App("words")
    words = app.source("words", schema=schema)

    @app.operator(reads=[words.by(*by)], state={"n": 0} if state is None else state)
    def count(state, stream, record):
        pass

    return app


class StateWriter:
    """Writes batches of an application into *folder*, as they would be committed."""

    def __init__(self, folder, app):
        self._kept, self._batch, self._not_merged = Checkpoints(folder), -1, []
        self._files = CutFiles(self._kept.cuts("count"))
        self._codec = StateCodec("count", app.operators["count"].state)
        self._kept.keep(app, "cluster")

    def save(self, states):
        """Write a cut of the next batch, in which keys have these states."""
        self._batch += 1
        cut = CutId(self._batch, 1)
        changed = {"count": {key: self._codec.encode(state) for key, state in states.items()}}
        changed[reminders_of("count")] = {f"{self._batch:017d} a": b"", "9" * 17: b"pending"}
        self._not_merged.append((cut, changed))
        named = tuple(cut for cut, _ in self._not_merged)
        self._files.save(Cut(id=cut, taken={}, changed=named), changed)

    def commit(self, states=None):
        """Let Spark commit the batch that is saved, or one with these states."""
        if states is not None:
            self.save(states)
        commits = self._kept.checkpoint("count") / "commits"
        commits.mkdir(parents=True, exist_ok=True)
        (commits / str(self._batch)).write_text("v1")
        self._files.drop_before(self._batch)

    def merge(self):
        """Put what is committed into the store."""
        with closing(self._files.state):
            self._files.state.merge(MergeState(self._batch, self._not_merged))
        self._not_merged = []


def write_until(folder, begun, stop):
    """Commit batches and merge them, until *stop*: in each, all keys have the same number."""
    writer = StateWriter(folder, counting())
    for number in count(1):
        writer.commit({f'["k{key}"]': {"n": number} for key in range(200)})
        if number % 3 == 0:
            writer.merge()
        begun.set()
        if stop.wait(0.001):  # or a slow reader would never find the same batch twice
            return

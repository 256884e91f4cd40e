"""When an application has ended all that it began, and how long that may take."""

import json
import os
import time
from types import SimpleNamespace

import pytest

import sojourn as sj
from sojourn.errors import ApplicationStopped, EngineError
from sojourn.spark.driver.batches import Batches, WakeUp, patience_s
from sojourn.spark.driver.layout import Layout
from sojourn.spark.driver.state.checkpoints import Checkpoints
from sojourn.spark.wire.counters import PartState

BATCH_S = 60.0


def shop(**told):
    app = sj.App("shop")

    @app.operator(reads=app.source("lines", schema="word string"), emits="word string", **told)
    def split(word):
        yield (word,)

    app.aggregate("count", reads=split, by="word", columns={"n": "count(*)"})
    return app


class Hosts:
    """Hosts that have nothing to tell."""

    def drain(self):
        self.draining = True

    def ask(self):
        return ["split"]

    def tallies(self):
        return {"split": []}


class Parts:
    """The part of which a test says whether anything in it is open."""

    def __init__(self, run):
        self._run = run

    def get(self, _name):
        return PartState(clean=self._run.clean)


class Run:
    """Batches of which a test says what is taken, and what is committed."""

    def __init__(self, folder):
        self.state = Checkpoints(folder)
        self.taken = {"shop.lines": {0: 0}}
        self.ends = {"shop.lines": {0: 0}, "shop.split": {0: 0}}
        for query, topic in (("split", "shop.lines"), ("count", "shop.split")):
            self.state.begin(query, {topic: {0: 0}})
        self.clean = -1
        pulls = SimpleNamespace(
            positions={"split": self.taken},
            parts=Parts(self),
            located=lambda _name, _tallies: None,
            offsets=SimpleNamespace(partitions=lambda: self.ends),
        )
        self.said = []
        self.batches = Batches(
            layout=Layout(shop(), "shop:app"),
            state=self.state,
            controller=Hosts(),
            pulls=pulls,
            since_s=time.time(),
            batch_s=BATCH_S,
        )

    def commit(self, query, topic, offset, batch=0, *, ago_s=0.0):
        checkpoint = self.state.checkpoint(query)
        offsets = json.dumps({topic: {"0": offset}})
        for log, text in (("offsets", f"v1\n{{}}\n{offsets}"), ("commits", "v1")):
            (checkpoint / log).mkdir(parents=True, exist_ok=True)
            path = checkpoint / log / str(batch)
            path.write_text(text)
            os.utime(path, (time.time() - ago_s,) * 2)

    def drain(self, *steps):
        """Drain; after each line that is told one step is done."""
        left = iter(steps)

        def tell(line):
            self.said.append(line)
            next(left, lambda: None)()

        self.batches.drain(tell, lambda: None)


@pytest.fixture
def run(tmp_path):
    return Run(tmp_path)


def test_what_has_taken_nothing_need_not_be_waited_for(run):
    run.drain()
    assert run.said == []


def test_what_was_taken_is_waited_for_until_it_is_done_and_committed(run):
    run.taken["shop.lines"][0], run.clean = 7, None
    assert run.batches.uncommitted() == 7

    def done():
        run.clean = 0
        run.commit("split", "shop.lines", 7)

    run.drain(done)
    assert len(run.said) == 1
    assert run.said[0].startswith("waiting for the batch of split to end (at most ")
    assert run.batches.uncommitted() == 0


def test_readers_are_woken_once_and_only_if_something_was_begun(run):
    """An idle part would take the record that wakes it, and its batch would have to end."""
    woken = []
    run.batches.drain(run.said.append, lambda: None, lambda: woken.append(True))
    assert not woken
    run.taken["shop.lines"][0], run.clean = 7, None
    steps = iter([lambda: None, lambda: run.commit("split", "shop.lines", 7)])

    def wake():
        woken.append(True)
        run.commit("split", "shop.lines", 7)
        run.clean = 0

    run.batches.drain(lambda _line: next(steps)(), lambda: None, wake)
    assert woken == [True]


@pytest.mark.parametrize(("taken", "counted"), [(0, 3), (7, 3), (8, 3), (9, 4)])
def test_the_record_that_wakes_readers_is_not_repeated_work(run, taken, counted):
    """What was written to its topic before and after it is."""
    run.commit("split", "shop.lines", 4)
    run.taken |= {"shop.lines": {0: 7}, "shop.retries": {0: taken}}
    first = {"shop.lines": {0: 0}, "shop.retries": {0: 7}}
    run.state.begin("split", first, anew=True)
    assert run.batches.uncommitted(WakeUp("shop.retries", 0, 7)) == counted
    run.commit("split", "shop.retries", 8, batch=1)
    assert run.batches.uncommitted(WakeUp("shop.retries", 0, 7)) == max(0, taken - 8) + 7


def test_it_is_told_when_the_batch_that_runs_will_have_ended(run):
    """It began when the one before was committed."""
    run.commit("split", "shop.lines", 5, ago_s=40.5)
    run.taken["shop.lines"][0], run.clean = 7, 1
    run.drain(lambda: run.commit("split", "shop.lines", 7, batch=1))
    assert run.said == ["waiting for the batch of split to end (at most 20 s)"] or (
        run.said[0].endswith("within 19 s")  # a machine that is busy
    )


def test_what_was_open_when_a_batch_ended_is_waited_for(run):
    run.commit("split", "shop.lines", 7, batch=3)
    run.taken["shop.lines"][0], run.clean = 7, 4
    run.drain(lambda: run.commit("split", "shop.lines", 7, batch=4))
    assert len(run.said) == 1


def test_of_sparks_own_operators_the_batch_that_runs_is_waited_for(run):
    """They do not tell what they have taken; it may be all that is there."""
    run.ends["shop.split"][0] = 3

    def commit():
        run.ends["shop.split"][0] = 9  # which it will take at the next start
        for query in ("count", "misfits of count"):
            run.commit(query, "shop.split", 3)

    run.drain(commit)
    assert run.said[0].startswith("waiting for the batch of count to end (at most ")


def test_while_no_broker_answers_sparks_own_operators_are_waited_for(run, monkeypatch):
    def away():
        monkeypatch.undo()
        raise EngineError("no broker answers")

    monkeypatch.setattr(run.batches.pulls.offsets, "partitions", away)
    run.drain()
    assert run.said[0].startswith("waiting for the batch of count to end (at most ")


def test_what_was_taken_of_a_partition_that_is_new_counts_too(run):
    run.taken["shop.lines"][1] = 4
    assert run.batches.uncommitted() == 4


def test_where_it_takes_too_long_it_says_what_has_not_ended(run, monkeypatch):
    monkeypatch.setattr("sojourn.spark.driver.batches.patience_s", lambda *_told: -1.0)
    run.taken["shop.lines"][0], run.clean = 7, None
    with pytest.raises(EngineError, match="split: the batch did not end in time; stop"):
        run.drain()


def test_what_has_failed_is_not_waited_for(run):
    def check():
        raise ApplicationStopped("split: seven is odd")

    run.taken["shop.lines"][0], run.clean = 7, None
    with pytest.raises(ApplicationStopped, match="seven"):
        run.batches.drain(lambda _line: None, check)


def test_a_drain_has_at_least_the_time_that_a_record_may_take():
    """The slowest record that is in service may need all its tries, each to its limit."""
    operator = Layout(shop(on_error=sj.OnError(retries=2)), "shop:app").functions["split"]
    assert patience_s([operator], BATCH_S) > BATCH_S + 3 * operator.time_limit_s
    assert patience_s([], BATCH_S) > BATCH_S

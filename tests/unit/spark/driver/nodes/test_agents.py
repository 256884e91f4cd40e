"""One agent on each executor: looked for, started, tried again, told of."""

import threading
import time
from collections import Counter

from sojourn.errors import EngineError
from sojourn.spark.driver.nodes.agents import Agents
from sojourn.spark.driver.nodes.executors import Executor

ONE, TWO = Executor("1", "left", 4), Executor("2", "right", 4)
DEADLINE_S = 20.0


class Cluster:
    """Executors that come and go, on which agents start as the test says."""

    def __init__(self, *there):
        self.there = list(there)
        self.starts = Counter()
        self.fails = {}
        self.before = lambda _executor, _stopping: None

    def look(self):
        return tuple(self.there)

    def start(self, executor, stopping):
        self.starts[executor.id] += 1
        self.before(executor, stopping)
        if self.fails.get(executor.id, 0) >= self.starts[executor.id]:
            raise EngineError(f"executor {executor.id}: no luck")

    def agents(self):
        return Agents(self.look, self.start, look_s=0.01, first_pause_s=0.01)


def await_that(condition):
    until_s = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < until_s
        time.sleep(0.005)


def test_every_executor_gets_one_agent():
    cluster = Cluster(ONE, TWO)
    with cluster.agents() as agents:
        await_that(lambda: len(agents.ready) == 2)
        looks = 0

        def look():
            nonlocal looks
            looks += 1
            return tuple(cluster.there)

        agents._look = look  # noqa: SLF001 - to see that it looked again
        await_that(lambda: looks > 5)
    assert cluster.starts == {"1": 1, "2": 1}


def test_several_are_started_at_once():
    """The slowest executor of many must not keep the others waiting."""
    cluster, both = Cluster(ONE, TWO), threading.Barrier(2, timeout=DEADLINE_S)
    cluster.before = lambda *_: both.wait()
    with cluster.agents() as agents:
        await_that(lambda: len(agents.ready) == 2)


def test_one_that_fails_is_tried_again_and_the_reason_told():
    cluster = Cluster(ONE)
    cluster.fails = {"1": 5}
    with cluster.agents() as agents:
        await_that(lambda: agents.problems == {"1": "executor 1: no luck"})
        await_that(lambda: agents.ready)
        assert agents.problems == {}
    assert cluster.starts["1"] == 6


def test_any_other_error_is_told_as_well():
    cluster = Cluster(ONE)

    def before(*_):
        raise ValueError("oh")

    cluster.before = before
    with cluster.agents() as agents:
        await_that(lambda: agents.problems == {"1": "ValueError('oh')"})


def test_an_executor_that_is_gone_is_forgotten_and_one_that_comes_is_started():
    cluster = Cluster(ONE)
    with cluster.agents() as agents:
        await_that(lambda: agents.ready == (ONE,))
        cluster.there = [TWO]
        await_that(lambda: agents.ready == (TWO,))
        assert agents.registered == (TWO,)


def test_an_executor_that_goes_before_its_agent_is_ready_never_was_a_node():
    cluster, go_on = Cluster(ONE), threading.Event()
    cluster.before = lambda *_: go_on.wait(DEADLINE_S)
    with cluster.agents() as agents:
        await_that(lambda: cluster.starts["1"])
        cluster.there = [TWO]
        await_that(lambda: cluster.starts["2"])
        go_on.set()
        await_that(lambda: agents.ready == (TWO,))
        assert agents.registered == (TWO,)


def test_an_agent_that_has_ended_is_started_again():
    cluster = Cluster(ONE)
    with cluster.agents() as agents:
        await_that(lambda: agents.ready)
        agents.lost("1")
        await_that(lambda: cluster.starts["1"] == 2)
        await_that(lambda: agents.ready)


def test_closing_lets_a_start_give_up():
    cluster = Cluster(ONE)

    def before(_executor, stopping):
        assert stopping.wait(DEADLINE_S)
        raise EngineError("the application stops")

    cluster.before = before
    with cluster.agents():
        await_that(lambda: cluster.starts["1"])
    assert not [each for each in threading.enumerate() if each.name.startswith("agent")]


def test_a_look_that_fails_is_done_again():
    """Java may be busy, or on its way out."""
    cluster, failures = Cluster(ONE), 0

    def look():
        nonlocal failures
        failures += 1
        if failures < 3:
            raise ConnectionError("no Java")
        return (ONE,)

    cluster.look = look
    with cluster.agents() as agents:
        await_that(lambda: agents.ready)


def test_closing_what_was_never_begun_does_nothing():
    Cluster().agents().__exit__()

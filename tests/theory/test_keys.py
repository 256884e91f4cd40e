"""Operators with a hottest key: the simulator against the queue of a host, and theory."""

from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from random import Random

import pytest

from sojourn.decide.plan import Plan
from sojourn.measure.interval import Interval
from sojourn.simulate.run import simulate
from sojourn.simulate.simulator import Simulator
from sojourn.spark.host.desk.keyed_queue import KeyedQueue
from sojourn.topology import Arrival, Operator, Topology

# Four standard errors, of both sides.
MARGIN = 2.0


def keyed(part, *, erlangs, **how):
    """One operator whose service takes a second, reached by *erlangs* records in it."""
    arrival = Arrival(name="records", per_s=erlangs, into="count")
    operator = Operator(name="count", service_s=1.0, hottest_key=part, **how)
    return Topology(name="keyed", arrivals=(arrival,), operators=(operator,))


@dataclass(slots=True)
class Waiting:
    """A record in the queue of a host."""

    key: str
    reached_s: float
    number: int


def waits_at_a_desk_s(part, erlangs, processors, *, records, random):
    """Return the wait of each record, in the queue that hosts have, with any other keys."""
    queue, serving, waits_s, number = KeyedQueue(), [], [], count()
    reached_s = random.expovariate(erlangs)
    while len(waits_s) < records:
        if serving and serving[0][0] < reached_s:
            now_s, _, done = heappop(serving)
            queue.release(done)
        else:
            now_s = reached_s
            reached_s += random.expovariate(erlangs)
            key = "the" if random.random() < part else f"other {next(number)}"
            queue.put(Waiting(key, now_s, next(number)))
        while len(serving) < processors and (taken := queue.take(1)):
            waits_s.append(now_s - taken[0].reached_s)
            heappush(serving, (now_s + random.expovariate(1.0), next(number), taken[0]))
    return waits_s[records // 10 :]


def over_batches(waits_s, batches=20):
    size = len(waits_s) // batches
    means = [sum(waits_s[i * size : (i + 1) * size]) / size for i in range(batches)]
    return Interval.over(means)


@pytest.mark.parametrize(
    ("part", "erlangs", "processors"), [(0.5, 1.5, 2), (0.25, 3.0, 4), (0.2, 3.5, 8)]
)
def test_records_wait_as_in_the_queue_of_a_host(part, erlangs, processors):
    """The order in which records are taken is that of the desk, not only the bound."""
    random = Random(f"{part} {erlangs}")
    desk_s = over_batches(
        waits_at_a_desk_s(part, erlangs, processors, records=150_000, random=random)
    )
    done = simulate(keyed(part, erlangs=erlangs), {"count": processors}, roots=600_000)
    assert desk_s.half_width < 0.15 * desk_s.value
    off_s = abs(done.mean_s.value - 1.0 - desk_s.value)
    assert off_s <= MARGIN * (desk_s.half_width + done.mean_s.half_width)


@pytest.mark.parametrize(
    ("part", "processors"), [(0.4, 1), (1.0, 1), (1.0, 7)], ids=["one", "both", "one key"]
)
def test_one_processor_or_one_key_is_a_single_server(part, processors):
    done = simulate(keyed(part, erlangs=0.7), {"count": processors}, roots=600_000)
    assert abs(done.mean_s.value - 1 / 0.3) <= MARGIN * done.mean_s.half_width


def test_with_any_number_of_processors_the_key_is_a_single_server_and_others_do_not_wait():
    done = simulate(keyed(0.2, erlangs=3.5), {"count": 200}, roots=1_000_000)
    alone_s = 0.2 * 0.7 / 0.3
    assert abs(done.mean_s.value - 1 - alone_s) <= MARGIN * done.mean_s.half_width


def test_beyond_its_bound_the_key_waits_and_the_others_do_not():
    """Five a second of the key are served one by one; others have 19 processors."""
    with Simulator(seed=5) as simulator:
        simulator.start(keyed(0.5, erlangs=10.0, service_scv=0.0), Plan.here({"count": 20}))
        (seen,) = simulator.observe(400.0).operators
    others = 0.5 * 10.0 * 400
    assert sum(p.served for p in seen.processors) == pytest.approx(400 + others, rel=0.05)
    assert seen.backlog == pytest.approx(4 * 400, rel=0.1)
    assert seen.hottest == pytest.approx(0.5, abs=0.03)


@pytest.mark.parametrize("pause_s", [0.0, 2.0])
def test_no_record_is_lost_while_processors_come_and_go(pause_s):
    with Simulator(seed=2, pause_s=pause_s) as simulator:
        simulator.start(keyed(0.3, erlangs=3.0), Plan.here({"count": 4}))
        for i in range(1, 60):
            pull = simulator.observe(10.0 * i)
            simulator.apply(Plan.here({"count": 4 + (i * 5) % 7}))
        assert sum(p.served for p in pull.operators[0].processors) > 0
        simulator.close()
        (seen,) = simulator.observe(2_000.0).operators
        assert (seen.backlog, simulator.in_flight) == (0, 0)

"""A part in any history of failures: nothing is lost, counted twice or waited for."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from sojourn.host.batch.relay_messages import DeadLetter
from unit.host.spark_stand_in import EXPIRING, World, called, expected, expected_states

EVENTS = [
    *["produce", "start", "rescale", "time_passes", "clock_jumps", "drain"],
    *["kill_processor", "kill_worker", "kill_host", "kill_in_step", "swap_host"],
    *["kill_driver", "node", "lose_executor"],
]
_histories = st.lists(
    st.tuples(st.sampled_from(EVENTS), st.integers(0, 11), st.integers(0, 60)), max_size=40
)


class Reader:
    """Reads a sink and leaves out what comes twice, with no more memory than it needs."""

    def __init__(self):
        self.floors, self.known, self.read = {}, {}, []

    def take(self, leaving, floor):
        partition, offset = leaving.root
        if floor > self.floors.get(partition, 0):
            self.floors[partition] = floor
            self.known = {
                name: root
                for name, root in self.known.items()
                if root.offset >= self.floors.get(root.partition, 0)
            }
        name = called(leaving)
        if offset >= self.floors.get(partition, 0) and name not in self.known:
            self.known[name] = leaving.root
            self.read.append(name)


def _payload(leaving):
    return b"" if isinstance(leaving.result, DeadLetter) else leaving.result.payload


@settings(max_examples=200)
@given(history=_histories, seed=st.integers(0, 2**32), away=st.booleans())
def test_whatever_fails_between_any_two_steps(history, seed, away):
    """After each event so many steps happen, in an order that the seed says."""
    world, random = World(away=away), Random(seed)
    often = random.choice([0.1, 0.6])
    for number in range(24 if away else 12):
        world.produce(number)
    for event, number, then in history:
        world.happens(getattr(world, event), number)
        world.run(then, random, often)
    world.settle(random)
    records, results = expected(world.roots())
    assert {called(leaving) for leaving, _ in world.sink} == set(results)
    state = world.disk.states[world.disk.last(world.disk.committed)]
    assert sorted(state) == records
    assert set(state.values()) <= {1}
    assert world.states() == expected_states(records)
    assert world.states(EXPIRING) == {}  # all that was there has expired
    # what comes again is what it was: nothing is worked out in another order
    content = {(called(leaving), _payload(leaving)) for leaving, _ in world.sink}
    assert len(content) == len({name for name, _ in content})
    reader = Reader()
    for leaving, floor in world.sink:
        reader.take(leaving, floor)
    assert sorted(reader.read) == results

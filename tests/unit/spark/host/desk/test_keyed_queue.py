"""One queue, in which a key is in service at most once and in order."""

from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

from sojourn.spark.host.desk.keyed_queue import KeyedQueue


def item(number, key=None):
    return SimpleNamespace(number=number, key=key)


def numbers(items):
    return [one.number for one in items]


def filled(*keys, alone=()):
    queue = KeyedQueue(alone)
    for number, key in enumerate(keys):
        queue.put(item(number, key))
    return queue


def test_without_keys_it_is_first_in_first_out():
    queue = filled(None, None, None)
    first = queue.take(1)
    second = queue.take(1)
    queue.give_back(second)
    queue.give_back(first)
    assert numbers(queue.take(9)) == [0, 1, 2]


def test_several_of_a_key_are_taken_together_and_in_order():
    queue = filled("a", "a", "b", "a")
    (first,) = queue.take(1)
    assert numbers(queue.take(1)) == [2]
    assert queue.take(1) == []  # those of a wait, and are seen to
    assert queue.behind == 2
    queue.release(first)
    assert numbers(queue.take(2)) == [1, 3]
    assert (len(queue), queue.behind) == (0, 0)


def test_what_goes_back_in_two_steps_is_in_order_again():
    """A processor may tell first that one failed, and later that the next was left."""
    queue = filled("a", "a", "a", "a")
    first, *others = queue.take(3)
    queue.give_back([first])
    assert queue.take(1) == []
    queue.give_back(others)
    assert numbers(queue.take(9)) == [0, 1, 2, 3]


def test_one_that_is_to_be_alone_is():
    queue = filled("a", None, "a", None, alone=[2])
    taken = queue.take(9)
    assert numbers(taken) == [0, 1]
    for one in taken:
        queue.release(one)
    assert numbers(queue.take(9)) == [2]
    assert numbers(queue.take(9)) == [3]


def test_one_that_is_to_be_alone_is_not_taken_with_those_before_it_of_its_key():
    queue = filled("a", "a", "a", alone=[2])
    first = queue.take(1)
    assert queue.take(1) == []
    queue.release(*first)
    (second,) = queue.take(9)
    queue.release(second)
    assert numbers(queue.take(9)) == [2]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["put", "take", "back"]),
            st.sampled_from(["a", "b", "c", None]),
            st.integers(0, 5),
        ),
        max_size=120,
    )
)
def test_of_each_key_the_first_that_is_left_is_served(events):
    world = World()
    for event, key, number in events:
        if event == "put":
            world.put(key, alone=number == 0)
        elif event == "take":
            world.take(1 + number)
        elif world.groups:
            world.give_back(number)
    for group in world.groups:
        world.queue.give_back(group)
    while group := world.queue.take(3):
        world.done(group)
    assert not any(world.left.values())
    assert (len(world.queue), world.queue.behind) == (0, 0)


class World:
    """A queue, groups that were taken off it, and by key what is left, in order."""

    def __init__(self):
        self.alone = set()
        self.queue, self.groups, self.left, self.number = KeyedQueue(self.alone), [], {}, 0

    def put(self, key, *, alone):
        if alone:
            self.alone.add(self.number)
        self.queue.put(item(self.number, key))
        self.left.setdefault(key, []).append(self.number)
        self.number += 1

    def take(self, most):
        group = self.queue.take(most)
        assert len(group) < 2 or not any(one.number in self.alone for one in group)
        for key in {one.key for one in group} - {None}:
            assert not any(one.key == key for other in self.groups for one in other)
            own = [one.number for one in group if one.key == key]
            assert own == self.left[key][: len(own)]
        self.groups += [group] if group else []

    def give_back(self, number):
        """Be done with the first *number* of a group, and give back the others."""
        group = self.groups.pop(number % len(self.groups))
        self.done(group[:number])
        self.queue.give_back(group[number:])

    def done(self, group):
        for one in group:
            self.queue.release(one)
            self.left[one.key].remove(one.number)

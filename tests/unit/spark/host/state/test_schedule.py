"""What is due when: in order, each once, however much of it is in memory."""

from hypothesis import given
from hypothesis import strategies as st

from sojourn.spark.host.batch.cut import CutId
from sojourn.spark.host.state.keyed_state import KeyedState
from sojourn.spark.host.state.schedule import Schedule, due_of, entry
from unit.spark.host.spark_stand_in import Disk

S = 1_000_000
_steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(0, 60)),
        st.tuples(st.just("pass"), st.integers(0, 30)),
        st.sampled_from([("cut", 0), ("merge", 0), ("restore", 0)]),
    ),
    max_size=60,
)


def passed(schedule, state, now_us):
    """Return the entries that are due, until there are no others."""
    came = []
    while schedule.next_us <= now_us:
        while (found := schedule.due(now_us)) is not None:
            came.append(found[0])
            state.change(schedule.name, found[0], b"")
    return came


@given(steps=_steps, most=st.integers(1, 5))
def test_whatever_is_in_memory(steps, most):
    """In the store, in changes since then, or in neither: all comes, and once."""
    disk, now_us, cuts = Disk(), 0, 0
    state = KeyedState(disk)
    schedule = Schedule(state, "count@reminders", most=most)
    added, came = [], []
    for step, number in steps:
        match step:
            case "add":
                due = entry(now_us + number * S, f"{len(added):03d}")
                added.append(due)
                state.change(schedule.name, due, b"x")
                schedule.added(due, b"x")
            case "pass":
                now_us += number * S
                came += passed(schedule, state, now_us)
                assert not [due for due in added if due_of(due) <= now_us and due not in came]
            case "cut":
                cut, cuts = CutId(cuts, 1), cuts + 1
                disk.deltas[cut] = state.cut(cut)[1]
            case "merge":
                for merge in state.committed(cuts - 1):
                    disk.merge(merge)
                    state.merged(merge.upto)
            case "restore":
                schedule.forget()
    now_us += 100 * S
    came += passed(schedule, state, now_us)
    assert sorted(came) == sorted(added)
    assert state.ordered(schedule.name, "", "9", most=1000)[0] == []


def test_those_that_are_due_together_come_in_order():
    state = KeyedState(Disk())
    schedule = Schedule(state, "count@reminders", most=2)
    for due_s in (5, 3, 9, 1, 7):
        state.change(schedule.name, entry(due_s * S, "a"), b"x")
    came = [due_of(due) // S for due in passed(schedule, state, 8 * S)]
    assert came == [1, 3, 5, 7]
    assert schedule.next_us == 9 * S

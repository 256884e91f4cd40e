"""Trees of roots: complete when all is done, in whatever order that is told."""

from hypothesis import given
from hypothesis import strategies as st

from sojourn.measure.trees import Completed, Trees
from sojourn.spark.wire.headers import child_identity

READERS = {"in": ["a"], "ab": ["b"], "both": ["b", "c"], "back": ["a"], "out": []}


def told(operator, identity, *, children=(), at_s=1.0, root="r", sojourn_s=0.5, weight=1):
    """Return what is told of a record."""
    return {
        "operator": operator,
        "root": root,
        "identity": identity,
        "birth_s": 0.0,
        "done_s": at_s,
        "sojourn_s": sojourn_s,
        "weight": weight,
        "children": list(children),
    }


# a sends one to b, one to b and c, one back to itself, and one that leaves
TREE = [
    told(
        "a",
        "r",
        children=[("ab", "r.a.0"), ("both", "r.a.1"), ("back", "r.a.2"), ("out", "r.a.3")],
    ),
    told("b", "r.a.0", at_s=2.0),
    told("b", "r.a.1", at_s=3.0),
    told("c", "r.a.1", at_s=9.0),
    told("a", "r.a.2", at_s=4.0),
]


def added(trees, report):
    return trees.add(report["operator"], **{k: v for k, v in report.items() if k != "operator"})


@given(order=st.permutations(TREE), twice=st.lists(st.sampled_from(TREE)))
def test_a_tree_is_complete_once_all_is_told_in_any_order(order, twice):
    """Reports of several hosts come in any order, and again after a failure."""
    trees = Trees(READERS, ["a"])
    done = [complete for report in (*order, *twice) if (complete := added(trees, report))]
    assert done == [Completed(birth_s=0.0, completion_s=9.0, sum_s=2.5, weight=1)]
    assert (len(trees), trees.forgotten) == (0, 0)


def test_what_lacks_a_report_stays_open():
    trees = Trees(READERS, ["a"])
    assert not any(added(trees, report) for report in TREE[:-1])
    assert len(trees) == 1


def test_a_root_that_two_operators_read_is_one_for_each():
    trees = Trees({"in": ["a", "a.b"], "x": ["c"]}, ["a", "a.b"])
    first = told("a", "r", children=[("x", "r.a.0")])
    second = told("a.b", "r", children=[("x", "r.a.b.0")])
    assert added(trees, first) is None
    assert added(trees, second) is None
    assert added(trees, told("c", "r.a.b.0", at_s=5.0)).completion_s == 5.0
    assert added(trees, told("c", "r.a.0", at_s=6.0)).completion_s == 6.0


def test_the_oldest_are_forgotten_where_there_are_too_many(monkeypatch):
    monkeypatch.setattr("sojourn.measure.trees._MOST", 2)
    trees = Trees(READERS, ["a"])
    for number in range(4):
        added(trees, told("a", f"r{number}", root=f"r{number}", children=[("ab", "x")]))
    assert (len(trees), trees.forgotten) == (2, 2)


def test_what_was_complete_is_remembered_for_a_while_only(monkeypatch):
    monkeypatch.setattr("sojourn.measure.trees._MOST", 1)
    trees = Trees(READERS, ["a"])
    assert added(trees, told("a", "r1", root="r1")) is not None
    assert added(trees, told("a", "r2", root="r2")) is not None
    assert added(trees, told("a", "r2", root="r2")) is None
    assert added(trees, told("a", "r1", root="r1")) is not None


def test_a_birth_in_the_future_is_no_negative_time():
    trees = Trees(READERS, ["a"])
    assert trees.add(
        "a", root="r", identity="r", birth_s=10.0, done_s=9.0, sojourn_s=0.1, weight=7
    ) == Completed(birth_s=10.0, completion_s=0.0, sum_s=0.1, weight=7)


def test_a_record_of_no_known_entry_waits_for_its_root():
    trees = Trees(READERS, ["a"])
    assert added(trees, told("b", "r.elsewhere.0")) is None
    assert len(trees) == 1


def test_a_long_way_round_a_loop_is_followed_to_its_end():
    root, rounds = "a-topic-of-somebody.else@Xk3f9a2B-5f0c9e1a/11/123456789", 1000
    long = "n" * 100
    trees = Trees({"in": ["n" * 99, long], "back": [long]}, ["n" * 99, long])
    identity, ids = root, []
    for at_s in range(rounds):
        child = child_identity(identity, long, 0, root=root)
        report = told(long, identity, root=root, at_s=at_s, children=[("back", child)])
        assert added(trees, report) is None
        ids.append(identity := child)
    assert added(trees, told(long, identity, root=root, at_s=rounds)).completion_s == rounds
    assert len(set(ids)) == rounds
    assert max(map(len, ids)) <= len(root) + 160

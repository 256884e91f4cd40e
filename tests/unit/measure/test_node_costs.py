"""What is learned of nodes that come and go, in any order and on any clock."""

from sojourn.measure.node_costs import NodeCosts, NodeMoves


def begun():
    moves = NodeMoves()
    moves.saw(0.0, there=["a"], settled=["a"])
    return moves


def test_nodes_that_are_there_at_the_start_teach_nothing():
    moves = NodeMoves()
    moves.asked(0.0, 1)
    moves.saw(5.0, there=["a", "b"], settled=["a", "b"])
    assert moves.costs == NodeCosts()


def test_a_node_has_come_when_its_processors_run_not_when_it_is_there():
    moves = begun()
    moves.asked(10.0, 2)
    moves.saw(12.0, there=["a", "b", "c"], settled=["a", "c"])
    assert moves.costs.adding_s == 2.0
    moves.saw(16.0, there=["a", "b", "c"], settled=["a", "b", "c"])
    assert moves.costs.adding_s == 4.0  # of 2 s and 6 s


def test_a_node_that_nobody_asked_for_teaches_nothing():
    moves = begun()
    moves.saw(5.0, there=["b"], settled=["b"])  # Spark has replaced one that died
    assert moves.costs == NodeCosts()


def test_a_node_that_goes_before_its_processors_run_teaches_nothing():
    moves = begun()
    moves.asked(1.0, 1)
    moves.saw(2.0, there=["a", "b"], settled=["a"])
    moves.saw(3.0, there=["a"], settled=["a"])
    moves.saw(9.0, there=["a", "c"], settled=["a", "c"])
    assert moves.costs.adding_s is None


def test_the_last_moves_count_and_one_that_took_long_does_not_decide():
    moves = begun()
    for n, took_s in enumerate([100.0, 3.0, 4.0, 60.0, 5.0, 2.0]):
        at_s = 1000.0 * (n + 1)
        moves.asked(at_s, 1)
        moves.saw(at_s + took_s, there=["a", f"n{n}"], settled=["a", f"n{n}"])
        moves.released(at_s + 500.0, f"n{n}")
        moves.released(at_s + 500.5, f"n{n}")  # decided once
        moves.saw(at_s + 501.0, there=["a"], settled=["a"])
    assert moves.costs == NodeCosts(adding_s=4.0, removing_s=1.0)


def test_a_clock_that_is_set_back_teaches_nothing():
    moves = begun()
    moves.asked(100.0, 1)
    moves.released(100.0, "a")
    moves.saw(1.0, there=["b"], settled=["b"])
    assert moves.costs == NodeCosts()

from math import inf

import pytest

import sojourn as sj


def vld(**bounds):
    return sj.Topology(
        name="vld",
        arrivals=(sj.Arrival(name="frames", per_s=13, into="extract"),),
        operators=(
            sj.Operator(name="extract", service_s=0.50, emits={"match": 1}, **bounds),
            sj.Operator(name="match", service_s=0.55, emits={"aggregate": 1}),
            sj.Operator(name="aggregate", service_s=0.02),
        ),
    )


BEST = {"extract": 10, "match": 11, "aggregate": 1}


def test_every_neighbour_moves_one_processor():
    for neighbour in sj.neighbours(vld(), BEST, nearest=20):
        moved = {name: neighbour.allocation[name] - k for name, k in BEST.items()}
        assert moved[neighbour.giver] == -1
        assert moved[neighbour.taker] == 1
        assert sum(neighbour.allocation.values()) == 22


def test_no_neighbour_of_the_optimum_is_better_and_the_best_comes_first():
    means = [n.mean_s for n in sj.neighbours(vld(), BEST)]
    assert means == sorted(means)
    assert means[0] > sj.predict(vld(), BEST).mean_s


def test_what_is_said_is_what_predict_says():
    for neighbour in sj.neighbours(vld(), BEST):
        predicted = sj.predict(vld(), neighbour.allocation)
        assert (neighbour.mean_s, neighbour.std_s) == (predicted.mean_s, predicted.std_s)


def test_a_giver_that_could_not_keep_up_is_infinite():
    tight = {"extract": 7, "match": 8, "aggregate": 2}
    moves = sj.neighbours(vld(), tight, nearest=20)
    assert {n.giver for n in moves if n.mean_s == inf} == {"extract", "match"}
    assert {n.giver for n in moves if n.mean_s < inf} == {"aggregate"}
    assert all(n.std_s == inf for n in moves if n.mean_s == inf)


def test_bounds_forbid_moves():
    bounded = vld(min_processors=10, max_processors=10)
    moves = sj.neighbours(bounded, BEST, nearest=20)
    assert all("extract" not in (n.giver, n.taker) for n in moves)
    assert [(n.giver, n.taker) for n in moves] == [("match", "aggregate")]


def test_only_as_many_as_asked_for():
    assert len(sj.neighbours(vld(), BEST, nearest=2)) == 2


def test_an_allocation_that_cannot_be_is_refused():
    with pytest.raises(sj.SojournError):
        sj.neighbours(vld(), {"extract": 10})

"""How many records a root makes, as it is learned."""

import pytest

from sojourn.spark.host.desk.visits import Visits


def entered(visits, topic, roots, **each):
    for _ in range(roots):
        visits.entered(topic)
        for operator, number in each.items():
            for _ in range(number):
                visits.visited(topic, operator)


def test_what_a_root_makes_is_told_by_topic_and_operator():
    visits = Visits()
    entered(visits, "lines", 10, split=1, count=3)
    entered(visits, "prices", 5, count=2)
    assert visits.of_all() == {
        "lines": {"split": 1.0, "count": 3.0},
        "prices": {"count": 2.0},
    }
    assert (visits.tree("lines"), visits.tree("prices")) == (4.0, 2.0)


def test_a_root_is_one_record_at_least():
    visits = Visits()
    assert visits.tree("nowhere") == 1.0
    entered(visits, "lines", 10)
    assert (visits.tree("lines"), visits.per_root("lines")) == (1.0, {})


def test_before_its_first_root_is_counted_nothing_is_divided_by_nothing():
    visits = Visits()
    visits.visited("lines", "split")
    assert visits.tree("lines") == 1.0


def test_what_was_long_ago_counts_less():
    visits = Visits()
    entered(visits, "lines", 4000, split=1)
    entered(visits, "lines", 20_000, split=3)
    assert visits.per_root("lines")["split"] == pytest.approx(3.0, abs=0.01)

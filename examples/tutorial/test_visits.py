"""The application `visits`, without Spark."""

from visits import app

from sojourn.testing import AppHarness, run


def test_visits_are_counted_by_country():
    sent = [("10.0.0.1",), ("10.0.0.5",), ("10.0.0.2",)]
    assert run(app, {"visits": sent}) == {"count": [("fr", 1), ("fr", 2), ("jp", 1)]}


def test_an_address_that_is_none_becomes_a_dead_letter():
    with AppHarness(app) as harness:
        harness.send("visits", ("nowhere",), ("10.0.0.4",))
        assert harness.results["count"] == [("de", 1)]
        assert [letter.record for letter in harness.dead_letters] == [("nowhere",)]

import pytest

from sojourn_papers.apps.check import Verdict, compared
from sojourn_papers.apps.topic_records import TopicRecord

SENT = {"lines": {"lines/0/0": ("to be",), "lines/0/1": ("",)}}


def split(_source, record):
    for word in record[0].split():
        yield "words", (word,)


def word(identity, text, root="lines/0/0"):
    return TopicRecord(record=(text,), identity=identity, root=root)


def test_equal_results_are_exact_in_any_order():
    found = compared(split, SENT, {"words": [word("2", "be"), word("1", "to")]})
    assert found == Verdict(sent=2, expected=2)
    assert found.exact


def test_what_is_missing_wrong_or_repeated_is_counted():
    came = [word("1", "to"), word("1", "to"), word("3", "not"), word("4", "to", "lines/0/1")]
    found = compared(split, SENT, {"words": came})
    assert found == Verdict(sent=2, expected=2, missing=1, wrong=2, repeated=1)
    assert not found.exact
    assert str(found) == (
        "2 records sent, 1 of 2 expected results found, 1 missing, 2 wrong, 1 repeated"
    )


def test_sinks_without_answers_are_not_compared():
    other = {"words": [word("1", "to"), word("2", "be")], "totals": [word("9", "7")]}
    assert compared(split, SENT, other).exact


@pytest.mark.parametrize("texts", [("to", "two"), ("two", "to")])
def test_results_that_came_again_with_another_value_are_wrong(texts):
    """Whichever came first: who reads the sink may have used either."""
    came = [word("2", "be"), *(word("1", text) for text in texts)]
    found = compared(split, SENT, {"words": came})
    assert (found.missing, found.wrong, found.repeated) == (0, 1, 0)

from collections import Counter
from contextlib import contextmanager
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sojourn_papers.apps.catalogue import entry
from sojourn_papers.apps.database import DATABASE
from sojourn_papers.apps.wordcount import app, offline, open_table, split, store
from sojourn_papers.apps.wordcount.samples import made_up, samples
from sojourn_papers.apps.wordcount.words import LONGEST

LINES = st.text(st.sampled_from("aB1 '\u2019_-.\xe9\u6f22\u0130\0\n"), max_size=30) | st.text(
    max_size=30
)


def counted(lines):
    """Return the counts of the words that `split` yields."""
    return {"words": set(Counter(word for line in lines for (word,) in split(line)).items())}


def expected(lines):
    return offline.rows(("lines", (line,)) for line in lines)


def test_a_line_is_split_into_its_words():
    assert list(split("Call me Ishmael.")) == [("call",), ("me",), ("ishmael",)]
    assert list(split("")) == list(split(" -- ")) == []


def test_what_is_too_long_for_a_word_is_none():
    assert list(split(f"a {'x' * LONGEST} {'y' * (LONGEST + 1)} z")) == [
        ("a",),
        ("x" * LONGEST,),
        ("z",),
    ]


@given(st.lists(LINES, max_size=5))
def test_operator_and_offline_find_the_same_words(lines):
    """They are written independently: one searches for words, one for what is between."""
    assert counted(lines) == expected(lines)


@pytest.mark.usefixtures("no_data")
def test_samples_are_the_same_for_the_same_seed():
    first, again, other = (list(islice(samples(seed), 100)) for seed in (1, 1, 2))
    assert first == again != other


@pytest.mark.usefixtures("no_data")
def test_made_up_words_follow_zipfs_law():
    """The r-th word comes r times less often than the first."""
    counts = Counter(word for line in islice(made_up(1), 20_000) for word in line.split())
    ranked = [n for _, n in counts.most_common()]
    assert len(counts) == pytest.approx(5_000, rel=0.02)
    assert ranked[0] / ranked[9] == pytest.approx(10, rel=0.1)
    assert ranked[0] / ranked[99] == pytest.approx(100, rel=0.2)


@pytest.mark.usefixtures("no_data")
def test_the_whole_application_in_memory_stores_the_counts(tmp_path, monkeypatch):
    monkeypatch.setenv(DATABASE, str(tmp_path / "words.sqlite"))
    lines = [line for (line,) in islice(samples(7), 200)]
    counts = Counter()
    with contextmanager(open_table)() as database:
        for word in (word for line in lines for (word,) in split(line)):
            counts[word] += 1  # what Spark does
            store(database, word, counts[word])
    assert offline.stored(str(tmp_path / "words.sqlite")) == expected(lines)


@pytest.mark.usefixtures("real_data")
def test_lines_of_the_novel_are_split_alike():
    lines = [line for (line,) in islice(samples(1), 10_000)]
    assert lines == [line for (line,) in islice(samples(1), 10_000)]
    assert counted(lines) == expected(lines)


def test_the_application_can_be_planned():
    made = entry("wordcount")
    assert made.app is app
    assert list(made.answers("lines", ("to be",))) == []
    assert app.topology({"lines": 100}).rates == pytest.approx(
        {"split": 100, "count": 1100, "store": 1100}
    )

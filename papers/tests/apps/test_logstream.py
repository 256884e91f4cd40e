from collections import Counter
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.in_memory import InMemory
from sojourn_papers.apps.catalogue import entry
from sojourn_papers.apps.database import DATABASE
from sojourn_papers.apps.logstream import app, counter, indexer, offline, rules
from sojourn_papers.apps.logstream.entry import LONGEST, Entry, parse
from sojourn_papers.apps.logstream.rule import RULES, Rule, first_rule
from sojourn_papers.apps.logstream.samples import made_up, samples
from sojourn_papers.apps.logstream.terms import terms

APACHE = "[Thu Jun 09 06:07:04 2005] [error] [client 10.0.0.7] File does not exist: /var/www"
SYSLOG = "Jun  9 06:06:20 combo sshd(pam_unix)[19939]: authentication failure; rhost=10.0.0.7"
WORDS = (
    "Thu,Jun,09, 9,06:07:04,2005,error,kernel,ftpd,Out of Memory,connection from,user unknown"
)
PARTS = st.sampled_from([*"[]() :\0\n", "] [", "] ", "File does not exist", *WORDS.split(",")])
LINES = st.one_of(
    st.text(max_size=60),
    st.lists(PARTS, max_size=12).map("".join),
    # a real line in which something is cut out, or put in
    st.builds(
        lambda line, at, most, part: line[:at] + part + line[at + most :],
        st.sampled_from([APACHE, SYSLOG]),
        st.integers(0, 60),
        st.integers(0, 3),
        PARTS | st.just(""),
    ),
)


def yielded(lines):
    """Return entries, terms and counts as the operators yield them."""
    entries, found, counts = [], [], []
    for line in lines:
        for made in rules(line):
            entries.append(made)
            ((*_, of_entry),) = indexer(*made)
            found += of_entry
            counts += counter(*made)
    tables = {"entries": entries, "terms": [(term,) for term in found], "counts": counts}
    return {
        name: {(*row, number) for row, number in Counter(rows).items()}
        for name, rows in tables.items()
    }


def expected(lines):
    return offline.rows(("lines", (line,)) for line in lines)


def test_a_line_of_apache_is_parsed():
    assert parse(APACHE) == Entry(
        time="06-09 06:07:04",
        level="error",
        component="httpd",
        message="[client 10.0.0.7] File does not exist: /var/www",
    )


def test_a_line_of_syslog_is_parsed():
    assert parse(SYSLOG) == Entry(
        time="06-09 06:06:20",
        component="sshd",
        message="authentication failure; rhost=10.0.0.7",
    )


@pytest.mark.parametrize(
    "line", ["", "  at java.lang.Thread.run", "Jun 99", "\0", "\u6f22" * 9000]
)
def test_other_lines_are_reported_as_unparsed(line):
    ((time, level, component, message, rule),) = rules(line)
    assert (time, level, component, rule) == ("", "", "", "unparsed")
    assert "\0" not in message, "PostgreSQL has no such text"
    assert len(message) <= LONGEST


def test_the_first_rule_that_applies_counts():
    by_level, by_pattern = Rule(name="a", level="error"), Rule(name="b", pattern="disk .* full")
    full = Entry(level="error", component="kernel", message="disk 3 is full")
    assert first_rule((by_level, by_pattern), full) == "a"
    assert first_rule((by_pattern, by_level), full) == "b"
    assert first_rule((Rule(name="c", component="ftpd"),), full) is None
    assert len({rule.name for rule in RULES}) == len(RULES)


def test_lines_of_no_interest_are_dropped():
    assert list(rules("[Thu Jun 09 06:07:04 2005] [notice] Digest: done")) == []


def test_an_entry_counts_for_its_rule_level_and_component():
    ((*_, indexed),) = indexer(*next(rules(APACHE)))
    assert indexed == ["10.0.0.7", "client", "does", "exist", "file", "not", "var", "www"]
    assert list(counter(*next(rules(APACHE)))) == [
        ("rule", "missing-file", "06-09 06"),
        ("level", "error", "06-09 06"),
        ("component", "httpd", "06-09 06"),
    ]


def test_terms_have_bounds():
    assert terms(f"ab abc {'x' * 64} {'y' * 65} --- ._abc_.") == ["abc", "x" * 64]


@given(st.lists(LINES, max_size=4))
def test_operators_and_offline_agree_on_any_line(lines):
    assert yielded(lines) == expected(lines)


@pytest.mark.usefixtures("no_data")
def test_samples_are_the_same_for_the_same_seed():
    first, again, other = (list(islice(samples(seed), 100)) for seed in (1, 1, 2))
    assert first == again != other


def test_made_up_lines_are_of_all_kinds():
    made = [rule for line in islice(made_up(1), 5_000) for *_, rule in rules(line)]
    assert set(made) == {rule.name for rule in RULES}
    assert 0.7 < len(made) / 5_000 < 0.9


@pytest.mark.parametrize("data", ["no_data", "real_data"])
def test_the_whole_application_in_memory_writes_its_tables(
    data, request, tmp_path, monkeypatch
):
    """Also if every record is processed twice, with the same id."""
    request.getfixturevalue(data)
    address = str(tmp_path / "logs.sqlite")
    monkeypatch.setenv(DATABASE, address)
    lines = list(islice(samples(3), 300))
    for _ in range(2):
        with InMemory(app) as run:
            for line in lines:
                run.results("lines", line)
            assert run.dead_letters == []
    assert offline.stored(address) == expected(line for (line,) in lines)


@pytest.mark.usefixtures("real_data")
def test_real_lines_are_parsed_alike():
    lines = [line for (line,) in islice(samples(1), 3_000)]
    assert yielded(lines) == expected(lines)
    unparsed = sum(rule == "unparsed" for line in lines for *_, rule in rules(line))
    assert unparsed < len(lines) / 5


def test_the_application_can_be_planned():
    made = entry("logstream")
    assert made.app is app
    assert list(made.answers("lines", (APACHE,))) == []
    assert set(app.topology({"lines": 100}).rates) == set(app.operators)

"""The tables of the log stream, without Sojourn: lines cut by hand, conditions written out."""

import string
from collections import Counter
from collections.abc import Iterator

from sojourn_papers.apps.catalogue import Record, Tables
from sojourn_papers.apps.database import open_database
from sojourn_papers.apps.logstream.entry import LONGEST, MONTHS
from sojourn_papers.apps.logstream.tables import QUERIES, SCHEMA

_TERM_LETTERS = frozenset(string.ascii_lowercase + string.digits + "._-")


def answers(_source: str, _record: Record) -> Iterator[tuple[str, Record]]:
    """Yield nothing: all results are in the database."""
    return iter(())


def rows(records: Iterator[tuple[str, Record]]) -> Tables:
    """Return the entries, terms and counts of all lines, each with how often it occurs.

    >>> line = "Jun  9 06:06:20 combo kernel: Out of Memory: Killed process 9 (httpd)."
    >>> tables = rows(iter([("lines", (line,))] * 2))
    >>> sorted(tables["terms"])
    [('httpd', 2), ('killed', 2), ('memory', 2), ('out', 2), ('process', 2)]
    """
    entries: Counter[Record] = Counter()
    for _, (line,) in records:
        time, level, component, message = _cut(line[:LONGEST].replace("\0", "\ufffd"))
        if rule := _rule(level, component, message):
            entries[time, level, component, message, rule] += 1
    terms: Counter[str] = Counter()
    counts: Counter[Record] = Counter()
    for (time, level, component, message, rule), number in entries.items():
        for term in _terms(message):
            terms[term] += number
        counts["rule", rule, time[:8]] += number
        counts["level", level, time[:8]] += number
        counts["component", component, time[:8]] += number
    return {
        "entries": frozenset((*entry, number) for entry, number in entries.items()),
        "terms": frozenset(terms.items()),
        "counts": frozenset((*counted, number) for counted, number in counts.items()),
    }


def stored(url: str) -> Tables:
    """Return what the database has of that."""
    database = open_database(url, SCHEMA)
    try:
        return {name: frozenset(database.read(query)) for name, query in QUERIES.items()}
    finally:
        database.close()


def _cut(line: str) -> tuple[str, str, str, str]:
    """Return time, level, component and message of a line."""
    head, bracket, rest = line.partition("] [")
    level, closed, message = rest.partition("] ")
    words = head.split(" ")
    if bracket and closed and _is_word(level) and len(words) == 5 and head[0] == "[":
        weekday, month, day, clock, year = words
        known = len(weekday) == 4 and weekday[1].isupper() and _is_word(weekday[2:])
        if known and _is_number(year, 4) and _is_time(month, day, clock):
            return _time(month, day, clock), level, "httpd", message.strip()
    month, day, clock = line[:3], line[4:6], line[7:15]
    spaces = (line[3:4], line[6:7], line[15:16])
    host, space, rest = line[16:].partition(" ")
    tag, colon, message = rest.partition(":")
    if spaces == (" ",) * 3 and host and space and colon:
        if day.startswith(" "):
            day = f"0{day[1:]}"
        if _is_time(month, day, clock):
            component = tag.partition("[")[0].partition("(")[0].strip()
            return _time(month, day, clock), "", component, message.strip()
    return "", "", "", line


def _is_time(month: str, day: str, clock: str) -> bool:
    parts = clock.split(":")
    return (
        month in MONTHS
        and _is_number(day, 2)
        and len(parts) == 3
        and all(_is_number(part, 2) for part in parts)
    )


def _is_number(text: str, digits: int) -> bool:
    return len(text) == digits and all(letter in string.digits for letter in text)


def _is_word(text: str) -> bool:
    return text != "" and all(letter in string.ascii_lowercase for letter in text)


def _time(month: str, day: str, clock: str) -> str:
    return f"{MONTHS.index(month) + 1:02}-{day} {clock}"


def _rule(level: str, component: str, message: str) -> str:  # noqa: PLR0911 - one per rule
    def says(*texts: str) -> bool:
        return any(text in message for text in texts)

    if not level and not component:
        return "unparsed"
    if level == "error":
        if says("File does not exist", "script not found"):
            return "missing-file"
        if says("forbidden by rule", "Access denied", "Attempt to serve directory"):
            return "forbidden"
        if says("Invalid URI", "Invalid method", "request failed", "without hostname"):
            return "bad-request"
        return "other-error"
    if component == "kernel" and says("Out of Memory"):
        return "out-of-memory"
    if says("authentication failure", "user unknown"):
        return "login-failed"
    if component == "ftpd" and says("connection from"):
        return "connection"
    return "abnormal-exit" if says("exited abnormally", "did not exit") else ""


def _terms(message: str) -> set[str]:
    spaced = "".join(c if c in _TERM_LETTERS else " " for c in message.lower())
    return {term for part in spaced.split() if 3 <= len(term := part.strip("._-")) <= 64}

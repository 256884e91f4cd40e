"""What is promised names the tests that show it, and they are there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs/background/promises.md").read_text(encoding="utf-8")
NAMED_TEST = re.compile(r"`((?:papers/|trial/)?tests/[\w/]+\.py)::(\w+)`")
NAMED = set(NAMED_TEST.findall(TEXT))


@pytest.mark.parametrize(("path", "test"), sorted(NAMED))
def test_what_shows_a_promise_is_there(path, test):
    assert f"def {test}" in (ROOT / path).read_text(encoding="utf-8")


def test_every_promise_is_shown_by_a_test():
    rows = [line.split("|")[1:-1] for line in TEXT.splitlines() if line.startswith("|")]
    shown = [row[2].strip() for row in rows if len(row) == 3]
    promises = [tests for tests in shown if tests not in {"---", "shown by"}]
    assert len(promises) > 25
    assert all(NAMED_TEST.search(tests) for tests in promises)

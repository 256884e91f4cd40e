"""The index of decisions, from the files of `docs/decisions`."""

import re
from collections import defaultdict

import documents

PAGE = documents.ROOT / "docs" / "decisions" / "README.md"
RECORD = re.compile(
    r"# (?P<number>\d+)\. (?P<title>[^\n]+)\n\n"
    r"Status: (?P<status>accepted|superseded by \[\d+\]\(\d{4}-[\w-]+\.md\))\. "
    r"Area: (?P<area>[^\n]+)\.\n\n"
    r"## Context\n\n.+?\n\n## Decision\n\n.+?\n\n## Consequences\n\n.+",
    re.DOTALL,
)
BEGINNING = """\
# Decisions

Each file has the status, context, decision and consequences of one decision. A superseded
decision stays, and names its successor. [Architecture](../architecture.md) describes the
result. `make docs` writes this page.
"""


def records():
    """Return the path of each decision, and what its file says of it, in order."""
    return [
        (path, RECORD.fullmatch(path.read_text(encoding="utf-8")))
        for path in sorted(PAGE.parent.glob("[0-9]*.md"))
    ]


def index():
    """Return the text of the index."""
    areas = defaultdict(list)
    for path, found in records():
        if found:
            areas[found["area"]].append(f"- [{found['title']}]({path.name})")
    lines = [BEGINNING]
    for area, decisions in areas.items():
        lines += [f"## {area}\n", *decisions, ""]
    return "\n".join(lines)

"""How large the source is: files and lines, by folder, now and at a revision.

    python benchmarks/source_size.py
    python benchmarks/source_size.py v0.1.0 --json

Lines are code, docstrings (also those under fields), comments, and blank.
"""

import argparse
import ast
import io
import json
import subprocess
import tarfile
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = "src/sojourn"
BESIDE = ("papers", "trial", "tests", "benchmarks")
COUNTS = ("files", "lines", "code", "docstrings", "comments")


def working_tree() -> Iterator[tuple[str, str]]:
    """Yield the path and text of each Python file that git knows, or would add."""
    listed = ("git", "ls-files", "--cached", "--others", "--exclude-standard", "*.py")
    for name in sorted(set(output(*listed).decode().splitlines())):
        if (ROOT / name).exists():
            yield name, (ROOT / name).read_text(encoding="utf-8")


def revision(name: str) -> Iterator[tuple[str, str]]:
    """Yield the same of a revision."""
    with tarfile.open(fileobj=io.BytesIO(output("git", "archive", name))) as archive:
        for member in archive:
            if member.isfile() and member.name.endswith(".py"):
                yield member.name, archive.extractfile(member).read().decode()


def output(*command: str) -> bytes:
    """Return what a command prints."""
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout


def size(text: str) -> Counter[str]:
    r"""Return the counts of one file; a line with code and a comment is code.

    >>> counts = size("'''One.'''\n# two\nthree = 3  # four\n")
    >>> [counts[name] for name in COUNTS]
    [1, 3, 1, 1, 1]
    """
    docstrings = {
        line
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
        for line in range(node.lineno, node.end_lineno + 1)
    }
    code, comments = set(), set()
    without = {tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            comments.add(token.start[0])
        elif token.type not in without | {tokenize.ENDMARKER}:
            code.update(range(token.start[0], token.end[0] + 1))
    return Counter(
        files=1,
        lines=len(text.splitlines()),
        code=len(code - docstrings),
        docstrings=len(docstrings),
        comments=len(comments - code),
    )


def sizes(files: Iterator[tuple[str, str]]) -> dict[str, Counter[str]]:
    """Return the counts of each folder of the package, its sum, and each folder beside it."""
    found: dict[str, Counter[str]] = {}
    for name, text in files:
        within = name.startswith(f"{PACKAGE}/")
        top = name.split("/", 1)[0]
        if not within and top not in BESIDE:
            continue
        counts = size(text)
        for folder in (name.rsplit("/", 1)[0], PACKAGE + "/**") if within else (top,):
            found.setdefault(folder, Counter()).update(counts)
    order = {name: number for number, name in enumerate((f"{PACKAGE}/**", *BESIDE), 1)}
    return dict(sorted(found.items(), key=lambda each: (order.get(each[0], 0), each[0])))


def main() -> None:
    """Print a table, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("revision", nargs="?", help="a commit, tag or branch to compare with")
    parser.add_argument("--json", action="store_true", help="print JSON")
    given = parser.parse_args()
    states = {"before": sizes(revision(given.revision))} if given.revision else {}
    states["now"] = sizes(working_tree())
    if given.json:
        print(json.dumps(states, indent=2))
        return
    folders = list(dict.fromkeys(name for found in reversed(states.values()) for name in found))
    folders.sort(key=lambda name: name.startswith(PACKAGE), reverse=True)
    folders.sort(key=lambda name: name.endswith("**") + 2 * (name in BESIDE))
    print(f"{'':<34}" + "".join(f"{name:>{16 if given.revision else 12}}" for name in COUNTS))
    for folder in folders:
        cells = (
            " → ".join(str(found.get(folder, Counter())[name]) for found in states.values())
            for name in COUNTS
        )
        print(f"{folder:<34}" + "".join(f"{c:>{16 if given.revision else 12}}" for c in cells))


if __name__ == "__main__":
    main()

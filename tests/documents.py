"""The commands shown in README and docs, and what they print.

A block marked `console` holds commands after `$ ` and, below each, its output. The test
`tests/test_documents.py` runs them and compares; `make docs` runs them and writes.
"""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
LONG_NUMBER = re.compile(r"\d+\.\d{5,}(?:e[-+]?\d+)?")
BLOCK = re.compile(r"(?<=```console\n)(.*?)(?=```)", re.DOTALL)
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*[./][^)#\s]*)")


def pages():
    """Return README and all pages of the documentation."""
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/**/*.md"))]


def commands(block):
    """Return the commands of a block."""
    return [line[2:] for line in block.splitlines() if line.startswith("$ ")]


def run(command):
    """Return what a `sojourn` command prints, its error and exit status included."""
    verb, *arguments = shlex.split(command)
    assert verb == "sojourn", f"{command!r} cannot be checked: only sojourn commands can"
    done = subprocess.run(
        [sys.executable, "-m", "sojourn", *arguments],
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "100", "NO_COLOR": "1", "PYTHONUTF8": "1"},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    printed = (done.stdout + done.stderr).rstrip("\n")
    return printed if done.returncode == 0 else f"{printed}\n(exit status {done.returncode})"


def true_block(block):
    """Return *block* with what its commands really print."""
    return "".join(f"$ {command}\n{run(command)}\n" for command in commands(block))


def same(one, other):
    """Tell whether two texts are the same, but for the last digits of long numbers.

    Those differ between processors: sums are taken in another order.
    """
    short = [LONG_NUMBER.sub(lambda m: f"{float(m[0]):.6g}", text) for text in (one, other)]
    return short[0] == short[1]


def write():
    """Bring all pages up to date."""
    for page in pages():
        text = page.read_text(encoding="utf-8")
        true = BLOCK.sub(lambda m: true_block(m[0]), text)
        if not same(text, true):
            page.write_text(true, encoding="utf-8")


if __name__ == "__main__":
    write()

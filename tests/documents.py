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
BLOCK = re.compile(r"(?<=```console\n)(.*?)(?=```)", re.DOTALL)
LINK = re.compile(r"\]\((?!https?:)([^)#]+)")


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


def write():
    """Bring all pages up to date."""
    for page in pages():
        text = page.read_text(encoding="utf-8")
        page.write_text(BLOCK.sub(lambda m: true_block(m[0]), text), encoding="utf-8")


if __name__ == "__main__":
    write()

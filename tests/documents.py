"""The commands and files shown in README and docs, and what they really are.

A block marked `console` holds commands after `$ ` and, below each, its output. The commands of
a page run one after the other in a folder of their own, which has the examples and the files
that the page shows, and keeps what they write. A block marked with a file, such as `yaml
examples/vld.yaml`, shows that file without its leading comments. `tests/test_documents.py`
compares; `make docs` writes.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"^```console\n(.*?)(?=^```$)", re.DOTALL | re.MULTILINE)
SHOWN_FILE = re.compile(r"^```\w+ (examples/\S+)\n(.*?)(?=^```$)", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*[./][^)#\s]*)")
ANCHOR = re.compile(r"\]\((?!https?:)([^)#\s]*)#([^)\s]+)\)")
# What differs from run to run, or from machine to machine: the time, and last digits, because
# sums are taken in another order.
TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC|[\d.]+ [mµ]?s real")
LONG_NUMBER = re.compile(r"\d+\.\d{5,}(?:e[-+]?\d+)?")


def pages():
    """Return README and all pages of the documentation, those of papers and trials included."""
    folders = (ROOT / "docs", ROOT / "papers" / "docs", ROOT / "trial" / "docs")
    found = [page for folder in folders for page in sorted(folder.rglob("*.md"))]
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *found]


def headings(text):
    """Return the names by which links reach the headings of a page."""
    found = re.findall(r"^#+ (.*)", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in found}


def commands(block):
    """Return the commands of a block."""
    return [line[2:] for line in block.splitlines() if line.startswith("$ ")]


@contextmanager
def folder(text):
    """Give a folder for the commands of a page, with the files that its text shows."""
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "examples").symlink_to(ROOT / "examples")
        for shown, _ in SHOWN_FILE.findall(text):
            shutil.copy(ROOT / shown, name)
        yield Path(name)


def run(command, where):
    """Return what a `sojourn` command prints, its error and exit status included."""
    verb, *arguments = shlex.split(command)
    assert verb == "sojourn", f"{command!r} cannot be checked: only sojourn commands can"
    done = subprocess.run(
        [sys.executable, "-m", "sojourn", *arguments],
        cwd=where,
        env={**os.environ, "COLUMNS": "100", "NO_COLOR": "1", "PYTHONUTF8": "1"},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    printed = (done.stdout + done.stderr).rstrip("\n")
    return printed if done.returncode == 0 else f"{printed}\n(exit status {done.returncode})"


def true_block(block, where):
    """Return *block* with what its commands really print."""
    return "".join(f"$ {command}\n{run(command, where)}\n" for command in commands(block))


def true_file(name):
    """Return a file as pages show it."""
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines(keepends=True)
    while lines[0].startswith("#"):
        del lines[0]
    return "".join(lines)


def same(one, other):
    """Tell whether two texts are the same, but for what differs from run to run."""
    steady = [
        LONG_NUMBER.sub(lambda m: f"{float(m[0]):.6g}", TIME.sub("", text))
        for text in (one, other)
    ]
    return steady[0] == steady[1]


def true_page(text):
    """Return the text of a page with all outputs and files as they really are."""

    def console(match):
        true = true_block(match[1], where)
        return match[0] if same(match[1], true) else match[0].removesuffix(match[1]) + true

    def file(match):
        return match[0].removesuffix(match[2]) + true_file(match[1])

    with folder(text) as where:
        return SHOWN_FILE.sub(file, BLOCK.sub(console, text))


def write():
    """Bring all pages up to date."""
    for page, text in generated().items():
        page.write_text(text, encoding="utf-8")
    for page in pages():
        text = page.read_text(encoding="utf-8")
        if (true := true_page(text)) != text:
            page.write_text(true, encoding="utf-8")


def generated():
    """Return the pages that are written by a program alone, and their texts."""
    import command_reference  # noqa: PLC0415 - they import this module
    import decision_index  # noqa: PLC0415

    return {
        decision_index.PAGE: decision_index.index(),
        command_reference.PAGE: command_reference.reference(),
    }


if __name__ == "__main__":
    write()

import subprocess
import sys

import pytest

import decision_index
import documents

PAGES = [
    pytest.param(text, id=page.relative_to(documents.ROOT).as_posix())
    for page in documents.pages()
    if documents.BLOCK.search(text := page.read_text(encoding="utf-8"))
]


@pytest.mark.parametrize("text", PAGES)
def test_commands_in_the_documentation_print_what_it_says(text):
    """`make docs` brings the pages up to date."""
    with documents.folder(text) as where:
        for block in documents.BLOCK.findall(text):
            true = documents.true_block(block, where)
            assert documents.same(block, true), true


def test_files_that_are_shown_are_the_files():
    shown = [
        (page.name, name, text)
        for page in documents.pages()
        for name, text in documents.SHOWN_FILE.findall(page.read_text(encoding="utf-8"))
    ]
    assert shown
    for page, name, text in shown:
        assert text == documents.true_file(name), f"{page} shows another {name}"


def test_the_tests_of_the_tutorial_pass():
    page = documents.ROOT / "docs" / "tutorial" / "first-application.md"
    with documents.folder(page.read_text(encoding="utf-8")) as where:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_visits.py"],
            cwd=where,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout
        assert "2 passed" in done.stdout


def test_every_sample_of_a_command_is_checked():
    """Output that no test compares goes stale. What needs Kafka is described, not shown."""
    for page in documents.pages():
        unchecked = documents.BLOCK.sub("", page.read_text(encoding="utf-8"))
        for line in unchecked.splitlines():
            assert not line.lstrip().startswith("$ "), f"{page.name}: {line}"
        assert "```text\n" not in unchecked, page.name


def test_every_link_between_pages_leads_somewhere():
    for page in documents.pages():
        for target in documents.LINK.findall(page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_every_link_to_a_heading_leads_to_one():
    for page in documents.pages():
        for target, heading in documents.ANCHOR.findall(page.read_text(encoding="utf-8")):
            read = (page.parent / target if target else page).read_text(encoding="utf-8")
            assert heading in documents.headings(read), f"{page.name}: {target}#{heading}"


@pytest.mark.parametrize("page", documents.generated(), ids=lambda page: page.name)
def test_generated_pages_are_up_to_date(page):
    """`make docs` writes them."""
    assert page.read_text(encoding="utf-8") == documents.generated()[page]


def test_decisions_are_numbered_in_order_and_have_all_sections():
    for number, (path, found) in enumerate(decision_index.records(), start=1):
        assert found, path.name
        assert int(found["number"]) == int(path.name[:4]) == number

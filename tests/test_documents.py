import pytest

import documents

BLOCKS = [
    pytest.param(block, id=f"{page.name}-{number}")
    for page in documents.pages()
    for number, block in enumerate(documents.BLOCK.findall(page.read_text(encoding="utf-8")))
]


@pytest.mark.parametrize("block", BLOCKS)
def test_commands_in_the_documentation_print_what_it_says(block):
    """`make docs` brings the pages up to date."""
    true = documents.true_block(block)
    assert documents.same(block, true), true


def test_every_link_between_pages_leads_somewhere():
    for page in documents.pages():
        for target in documents.LINK.findall(page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"

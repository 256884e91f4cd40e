"""What `import sojourn` offers, and what it costs."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import sojourn as sj


def declared():
    """Return the names that type checkers see, with the module of each."""
    tree = ast.parse(Path(sj.__file__).read_text(encoding="utf-8"))
    (block,) = (
        node
        for node in tree.body
        if isinstance(node, ast.If)
        and isinstance(node.test, ast.Name)
        and node.test.id == "TYPE_CHECKING"
    )
    return {alias.name: line.module for line in block.body for alias in line.names}


def test_all_names_are_listed_sorted_and_once():
    assert sj.__all__ == sorted(set(sj.__all__))
    assert dir(sj) == sj.__all__


def test_what_type_checkers_see_is_what_can_be_imported():
    assert declared() == sj._HOME  # noqa: SLF001 - the table behind the lazy imports
    assert sorted(declared()) == sj.__all__


@pytest.mark.parametrize("name", sj.__all__)
def test_every_name_is_the_one_of_its_module(name):
    assert getattr(sj, name) is getattr(import_module(declared()[name]), name)


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nosuch'"):
        sj.nosuch  # noqa: B018 - asking for it is the test


def test_importing_it_imports_nothing_else_of_it():
    """Hosts, processors and `--help` start with it."""
    program = (
        "import sys, sojourn\n"
        "print(*[name for name in sys.modules if name.startswith(('sojourn.', 'numpy'))])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, encoding="utf-8", check=True
    )
    assert done.stdout.split() == []

"""The pages that describe the code are compared with the code."""

import ast
import doctest
import re
import tomllib

import pytest

import documents

SOURCE = documents.ROOT / "src" / "sojourn"
BESIDE = {
    f"sojourn_{name}": documents.ROOT / name / "src" / f"sojourn_{name}"
    for name in ("papers", "trial")
}
PAGES = {
    page.relative_to(documents.ROOT).as_posix(): page.read_text(encoding="utf-8")
    for page in documents.pages()
}
ARCHITECTURE, GLOSSARY, PATHS = (
    PAGES[f"docs/{name}.md"]
    for name in ("architecture", "background/glossary", "background/paths")
)
CONTRACTS = tomllib.loads((documents.ROOT / "pyproject.toml").read_text(encoding="utf-8"))[
    "tool"
]["importlinter"]["contracts"]
# Folders of which every file is one choice: a model, a policy, an experiment.
CHOICES = (
    "src/sojourn/model/station",
    "src/sojourn/act/policy",
    "src/sojourn/decide/place",
    "papers/src/sojourn_papers/experiments/papers",
)


def parts():
    """Return the packages and modules directly in sojourn."""
    return {
        path.stem
        for path in SOURCE.iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    } - {"__init__", "__main__"}


def shape():
    """Return the parts that the page lists, from top to bottom, and those it calls pure."""
    listed = re.search(r"^## Shape\n+((?:    .*\n)+)", ARCHITECTURE, re.MULTILINE)[
        1
    ].splitlines()
    names = [line.split()[0] for line in listed]
    return names, {
        name for name, line in zip(names, listed, strict=True) if line.endswith("pure")
    }


def contract(start):
    (found,) = (each for each in CONTRACTS if each["name"].startswith(start))
    return found


def layers():
    """Return the layers of the import contract, each the set of its parts."""
    return [
        {name.removeprefix("sojourn.") for name in re.split(r" [|:] ", layer)}
        for layer in contract("Imports go one way")["layers"]
    ]


def exists(name):
    """Tell whether `decide/assign` or `sojourn.decide.assign.assign` is there."""
    path, steps = found(name)
    while steps and (path / steps[0]).is_dir():
        path /= steps.pop(0)
    if steps and path.joinpath(steps[0]).with_suffix(".py").is_file():
        path = path.joinpath(steps.pop(0)).with_suffix(".py")
    if not steps:
        return True
    module = path if path.is_file() else path / "__init__.py"
    return len(steps) <= 2 and defines(module, steps[0])


def found(name):
    """Return the folder of the package that *name* begins with, and the steps below it."""
    steps = re.split(r"[./]", name.removeprefix("sojourn.").strip("/"))
    return (BESIDE[steps.pop(0)] if steps[0] in BESIDE else SOURCE), steps


def defines(module, name):
    """Tell whether a module defines or imports *name*."""
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        match node:
            case ast.FunctionDef(name=found) | ast.ClassDef(name=found) if found == name:
                return True
            case ast.Name(id=found, ctx=ast.Store()) if found == name:
                return True
            case ast.alias() if name in {node.name, node.asname}:
                return True
    return False


# -- packages ----------------------------------------------------------------------------------


def test_the_architecture_lists_every_part_once():
    names, _ = shape()
    assert sorted(names) == sorted(parts())


def test_the_import_contract_has_every_part_once():
    assert sorted(name for layer in layers() for name in layer) == sorted(parts())


def test_the_architecture_lists_parts_in_the_order_of_imports():
    place = {name: number for number, layer in enumerate(layers()) for name in layer}
    names, _ = shape()
    assert [place[name] for name in names] == sorted(place[name] for name in names)


def test_what_the_architecture_calls_pure_is_checked_to_be():
    checked = {
        name.split(".")[1]
        for name in contract("Models and decisions are pure")["source_modules"]
    }
    assert checked == shape()[1]


def test_every_part_but_spark_is_checked_not_to_import_pyspark():
    modules = contract("Only drivers and tasks")["source_modules"]
    checked = {name.split(".")[1] for name in modules if not name.startswith("sojourn.spark")}
    assert checked == parts() - {"spark"}


@pytest.mark.parametrize("each", CONTRACTS, ids=lambda each: each["name"])
def test_contracts_name_only_what_exists(each):
    for name in each.get("source_modules", ()):
        assert name == "sojourn" or exists(name), name


# -- what pages name ---------------------------------------------------------------------------

IN_TREE = re.compile(
    r"\b(?:(?:papers|trial)/)?(?:src|tests|benchmarks|docs|examples)/[\w./-]*[\w/]"
)
DOTTED = re.compile(r"\bsojourn(?:_papers|_trial)?(?:\.\w+)+")
SPAN = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")


@pytest.mark.parametrize("page", PAGES)
def test_files_that_pages_name_exist(page):
    for name in IN_TREE.findall(PAGES[page]):
        assert (documents.ROOT / name).exists(), name


@pytest.mark.parametrize("page", PAGES)
def test_modules_that_pages_name_exist(page):
    text = re.sub(r"\]\([^)]*\)", "]", PAGES[page])  # links are looked at elsewhere
    for name in DOTTED.findall(text):
        assert exists(name), name
    # `app.sink` and `spark.master` are what users write, `report.md` is a file
    dotted = "|".join(parts() - {"app", "spark"})
    for span in SPAN.findall(text):
        if re.fullmatch(
            rf"(?:{'|'.join(parts())})(?:/\w+)+/?|(?:{dotted})(?:\.(?!md)\w+)+", span
        ):
            assert exists(span), span
        if re.fullmatch(r"\w+\.py", span):
            assert any(documents.ROOT.glob(f"*/**/{span}")), span


def test_modules_that_comments_and_docstrings_name_exist():
    named = re.compile(rf"(?:{'|'.join(parts())})(?:/\w+)+|sojourn(?:\.\w+)+")
    for path in SOURCE.rglob("*.py"):
        for span in SPAN.findall(path.read_text(encoding="utf-8")):
            assert not named.fullmatch(span) or exists(span), f"{path.name} names {span}"


# -- the glossary ------------------------------------------------------------------------------

ROW = re.compile(r"^\| (?!word|-)([^|]+) \| ([^|]+) \| ([^|]*) \|$", re.MULTILINE)


def rows():
    """Return the words of each row, and where in the code they are."""
    for words, _, places in ROW.findall(GLOSSARY):
        yield (
            [re.sub(r" \(.*\)", "", word) for word in words.split(", ")],
            SPAN.findall(places),
        )


def test_every_word_of_the_glossary_is_used_in_the_code_it_names():
    missing = []
    for words, places in rows():
        assert places, words
        assert all(map(exists, places)), places
        text = " ".join(map(source, places))
        for word in words:
            pattern = re.escape(word).replace(r"\ ", r"[\s_]+").replace(r"\-", r"[-_\s]")
            if not re.search(rf"(?i)(?<![a-z]){pattern}", text):
                missing.append((word, places))
    assert missing == []


def source(place):
    """Return the text of a part or module, or of where a name is defined, and its path."""
    package, steps = found(place)
    path = package.joinpath(*steps)
    while not path.is_dir() and not path.with_suffix(".py").is_file():
        path = path.parent
    files = sorted(path.rglob("*.py")) if path.is_dir() else [path.with_suffix(".py")]
    return " ".join([place, *(each.read_text(encoding="utf-8") for each in files)])


def test_every_part_is_in_the_glossary():
    named = {re.split(r"[./]", place)[0] for _, places in rows() for place in places}
    assert named - BESIDE.keys() == parts()


def test_no_word_is_in_the_glossary_twice():
    words = [word for words, _, _ in ROW.findall(GLOSSARY) for word in words.split(", ")]
    assert sorted(words) == sorted(set(words))


# -- what would have to be changed with every new file -----------------------------------------


@pytest.mark.parametrize("folder", CHOICES)
def test_no_doctest_lists_a_folder(folder):
    """One more model, policy or experiment is one more file, and no other changes."""
    names = {path.stem for path in (documents.ROOT / folder).glob("*.py")} - {
        "__init__",
        "base",
    }
    texts = {str(path): path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py")}
    for where, text in (texts | PAGES).items():
        if ">>>" not in text:
            continue
        for example in doctest.DocTestParser().get_examples(text):
            assert not all(name in example.want for name in names), f"{where}: {example.source}"


def test_paths_fit_on_a_screen_and_every_step_names_its_module():
    steps = re.findall(r"^\d+\. (.*)", PATHS, re.MULTILINE)
    assert len(PATHS.splitlines()) <= 40
    for step in steps:
        named = re.match(r"`([a-z_/]+)`", step)
        assert named, step
        assert exists(named[1]), step

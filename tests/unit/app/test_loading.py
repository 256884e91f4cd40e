import json
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

import sojourn as sj
from sojourn.app.loading import check_loadable, load
from sojourn.errors import BadApplication, BadFile, BadTopology

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def refusal(call, *arguments):
    with pytest.raises(BadApplication) as caught:
        call(*arguments)
    return str(caught.value)


def test_the_example_is_found_and_planned(monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES)
    app = load("wordcount:app")
    assert list(app.operators["split"]("to be")) == [("to",), ("be",)]
    plan = sj.minimise(app.topology({"lines": 1000}), sj.Target("p95", 0.1))
    assert plan.allocation["split"] > plan.allocation["count"] > 1


@pytest.mark.parametrize(
    "address", ["", "app", "a.b", "a:", ":app", "a b:app", "a:app()", "1:a"]
)
def test_an_address_is_a_module_and_a_name(address):
    assert "is not an address; write package.module:app" in refusal(load, address)


@pytest.mark.parametrize("file", ["vld.yaml", "vld copy.YML", "vld.json"])
def test_a_topology_file_is_loaded_as_its_stand_in(folder, file):
    vld = {"format": 1, "name": "vld", "arrivals": {"frames": {"per_s": 13, "into": "extract"}}}
    operators = {"extract": {"service_s": 0, "emits": {"match": 2}}, "match": {"service_s": 0}}
    (folder / file).write_text(json.dumps(vld | {"operators": operators}))
    app = load(str(folder / file))
    assert [stream for stream, _ in app.operators["extract"]("frames", (1,))] == [
        "extract-match",
        "extract-match",
    ]


def test_what_is_wrong_with_a_topology_file_is_said_as_it_is():
    with pytest.raises(BadFile, match=r"nowhere\.yaml: cannot be read"):
        load("nowhere.yaml")
    with pytest.raises(BadTopology, match=r"broken\.yaml:7: .* no operator 'mach'"):
        load(str(EXAMPLES / "broken.yaml"))


def test_what_is_not_there_is_named(folder):
    assert "importing nowhere failed: ModuleNotFoundError" in refusal(load, "nowhere:app")
    assert "the module has no app; write app = sj.App(…)" in refusal(load, "json:app")
    assert "dumps is <function dumps" in refusal(load, "json:dumps")
    (folder / "cards.py").write_text("import sojourn as sj\napp = sj.App('cards')\n")
    assert "the module has no ap; use cards:app" in refusal(load, "cards:ap")
    (folder / "broken_module.py").write_text("1 / 0")
    assert "failed: ZeroDivisionError: division by zero" in refusal(load, "broken_module:app")


def test_what_a_module_refuses_itself_is_said_as_it_is(folder):
    (folder / "refused_module.py").write_text("import sojourn as sj\napp = sj.App('a b')")
    assert refusal(load, "refused_module:app").startswith("name: 'a b' is not a valid name")


def test_an_application_in_pieces_is_not_loaded(folder):
    (folder / "empty_module.py").write_text("import sojourn as sj\napp = sj.App('empty')")
    assert refusal(load, "empty_module:app").startswith("sources: there is no source")


def kept(line):
    assert line


def application(**settings):
    app = sj.App("app")
    lines = app.source("lines", schema="line string")
    return app, app.operator(reads=lines, name="a", **settings)


def test_functions_of_a_module_are_found():
    app, operator = application(set_up=None)
    operator(partial(kept))
    check_loadable(app)


def test_functions_inside_others_are_not_found_by_hosts():
    app, operator = application()
    operator(lambda line: None)  # noqa: ARG005
    message = refusal(check_loadable, app)
    assert message.startswith("operators.a: the function is defined inside another one, test_")
    assert "use set_up= for what it needs" in message


def test_set_up_has_to_be_found_too():
    app, operator = application(set_up=lambda: 7)
    operator(max)
    assert refusal(check_loadable, app).startswith(
        "operators.a.set_up: the function is defined"
    )


def test_functions_of_the_main_program_are_planned_but_not_hosted():
    program = """
import sojourn as sj
from sojourn.app.loading import check_loadable
app = sj.App("app")
@app.operator(reads=app.source("lines", schema="line string"), service_s=0.1)
def kept(line): pass
print(sj.assign(app.topology({"lines": 10}), 3).allocation)
try:
    check_loadable(app)
except sj.SojournError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, encoding="utf-8", check=True
    )
    planned, refused = done.stdout.splitlines()
    assert planned == "{'kept': 3}"
    assert refused.startswith(
        "operators.kept: the function is in __main__, which a host cannot"
    )


def test_a_host_loads_an_application_without_the_planner():
    """It starts once for every operator, on every machine: what it imports, all wait for."""
    program = """
import sys
import sojourn.app.codec.json, sojourn.app.output, sojourn.app.waiting_app
from sojourn.app.loading import load
load("wordcount:app")
print(sorted({"numpy", "yaml", "sojourn.topology.topology", "asyncio"} & set(sys.modules)))
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=EXAMPLES, capture_output=True, encoding="utf-8", check=True,
    )  # fmt: skip
    assert done.stdout == "[]\n"

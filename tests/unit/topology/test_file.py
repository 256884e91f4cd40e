import json
from dataclasses import asdict
from itertools import pairwise
from math import isfinite
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from sojourn.errors import (
    BadFile,
    BadNumber,
    BadTopology,
    SojournError,
)
from sojourn.topology import Arrival, Operator, Topology
from sojourn.topology.file import FORMAT, parse_topology, read_topology, topology_text
from sojourn.topology.node_cores import NodeCores
from strategies import topologies

GOOD = """\
format: 1
name: vld
arrivals:
  frames: {per_s: 13, into: extract}
  replays:
    per_s: 2
    into: {extract: 0.25, match: 0.75}
    scv: 0.5
operators:
  extract:
    service_s: 0.5
    service_scv: 0.8
    emits: {match: 1.0}
  match:
    service_s: 0.55
    emits: {aggregate: 0.9, extract: 0.1}
    route: one_of
    arrival_scv: 1.5
    dispatch: round_robin
    transfer_s: 0.003
  aggregate:
    service_s: 0.02
    min_processors: 2
    max_processors: 4
    speed: 2
"""

VLD = Topology(
    name="vld",
    arrivals=(
        Arrival(name="frames", per_s=13, into="extract"),
        Arrival(name="replays", per_s=2, into={"extract": 0.25, "match": 0.75}, scv=0.5),
    ),
    operators=(
        Operator(name="extract", service_s=0.5, service_scv=0.8, emits={"match": 1.0}),
        Operator(
            name="match",
            service_s=0.55,
            emits={"aggregate": 0.9, "extract": 0.1},
            route="one_of",
            arrival_scv=1.5,
            dispatch="round_robin",
            transfer_s=0.003,
        ),
        Operator(name="aggregate", service_s=0.02, min_processors=2, max_processors=4, speed=2),
    ),
)


def small(per_s="1", service_s="0.1", **more):
    """Return a small good file, with the values written as given."""
    fields = "".join(f", {name}: {value}" for name, value in more.items())
    return (
        "format: 1\nname: words\n"
        f"arrivals: {{lines: {{per_s: {per_s}, into: count}}}}\n"
        f"operators: {{count: {{service_s: {service_s}{fields}}}}}\n"
    )


def document(topology):
    """Return a topology as the plain values that a file holds."""

    def named(records):
        # what is None in Python is left out in a file
        plain = {r.name: {k: v for k, v in asdict(r).items() if v is not None} for r in records}
        return {name: {k: v for k, v in r.items() if k != "name"} for name, r in plain.items()}

    return {
        "format": FORMAT,
        "name": topology.name,
        "arrivals": named(topology.arrivals),
        "operators": named(topology.operators),
        **({} if topology.cores is None else {"cores": topology.cores}),
    }


def refusal(text, kind=SojournError, **source):
    with pytest.raises(SojournError) as caught:
        parse_topology(text, **source)
    assert isinstance(caught.value, kind)
    return caught.value


# What is read


def test_a_file_is_the_topology_it_describes(tmp_path):
    path = tmp_path / "vld.yaml"
    path.write_text(GOOD)
    assert read_topology(path) == parse_topology(GOOD) == VLD


def test_yaml_and_json_say_the_same(tmp_path):
    path = tmp_path / "vld.json"
    path.write_text(json.dumps(document(VLD), indent="\t"))
    assert read_topology(path) == VLD


@pytest.mark.parametrize("prefix", ["", " \n", "\ufeff"], ids=["plain", "blank", "BOM"])
@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
@pytest.mark.parametrize("name", ["vld.yaml", "vld.json"])
def test_any_editor_may_have_written_the_file(tmp_path, prefix, ending, name):
    text = GOOD if name == "vld.yaml" else json.dumps(document(VLD), indent="\t")
    path = tmp_path / name
    path.write_bytes((prefix + text).replace("\n", ending).encode())
    assert read_topology(path) == VLD


def test_json_may_have_any_ending():
    assert parse_topology(json.dumps(document(VLD)), source="vld.topology") == VLD


def test_yaml_may_start_with_a_brace():
    lines = small().splitlines()
    assert parse_topology("{" + ",\n".join(lines) + "}") == parse_topology(small())


@given(topology=topologies())
def test_a_topology_written_down_reads_the_same(topology):
    plain = document(topology)
    assert parse_topology(yaml.safe_dump(plain)) == topology
    assert parse_topology(json.dumps(plain)) == topology


@pytest.mark.parametrize(
    ("written", "number"),
    [
        ("1e3", 1000),
        ("1E3", 1000),
        ("1e+3", 1000),
        ("10e-1", 1),
        (".5", 0.5),
        ("5.", 5),
        ("+7", 7),
        ("007", 7),
        ("1.5", 1.5),
        ("1" + "0" * 18, 1e18),
    ],
)
def test_numbers_are_those_of_yaml_1_2(written, number):
    topology = parse_topology(small(per_s=written, service_s="0"))
    assert topology.arrivals_per_s == pytest.approx(number)


@pytest.mark.parametrize(
    "written", ["12:30", "1_000", "0x10", "0o17", "no", "yes", "on", "1e", "e3", "--1", "'1'"]
)
def test_what_only_yaml_1_1_takes_for_a_number_or_a_truth_is_text(written):
    error = refusal(small(per_s=written), BadTopology)
    assert error.problem.startswith(repr(written.strip("'")))


@pytest.mark.parametrize("written", ["true", "False", "null", "~", ""])
def test_truths_and_nothing_are_no_numbers(written):
    assert refusal(small(per_s=written), BadTopology).place == "arrivals.lines.per_s"


@pytest.mark.parametrize("written", [".nan", ".inf", "-.INF", "+.inf", "-1", "1" + "0" * 5000])
def test_numbers_that_are_no_quantities_are_refused(written):
    assert refusal(small(per_s=written), BadNumber).place == "arrivals.lines.per_s"


@pytest.mark.parametrize("name", ["no", "on", "1e", "1_000", "größe", "a.b.c", "nulls"])
def test_a_name_need_not_be_in_quotes(name):
    assert parse_topology(small().replace("count", name)).operators[0].name == name


def test_a_name_may_have_as_many_dots_as_it_likes():
    name = ".".join("abcdefghijklmnopqrstuvwxyz")
    text = small().replace("count", name)
    assert parse_topology(text).operators[0].name == name
    error = refusal(text.replace("0.1", "-1"), BadNumber)
    assert (error.place, error.source) == (f"operators.{name}.service_s", "topology:4")


@pytest.mark.parametrize("name", ["1", "1.5", "true", "null", "~", ".nan"])
def test_a_name_that_yaml_takes_for_something_else_needs_quotes(name):
    error = refusal(small().replace("count:", f"{name}:"), BadTopology)
    assert error.source == "topology:4"
    assert error.way_out == "put it in quotes"
    assert parse_topology(small().replace("count", f"'{name}'")).operators[0].name == name


@pytest.mark.parametrize("key", ["[a, b]", "{a: b}", "[[a], {b: c}]"])
def test_a_list_is_no_name(key):
    error = refusal(f"format: 1\n? {key}\n: 1\n", BadTopology)
    assert error.source == "topology:2"
    assert error.problem.startswith(("[", "{"))


def test_an_alias_stands_for_what_it_names():
    text = """\
format: 1
name: twins
arrivals: {in: {per_s: 1, into: {a: 0.5, b: 0.5}}}
operators:
  a: &fast {service_s: 0.1}
  b: *fast
"""
    assert [each.service_s for each in parse_topology(text).operators] == [0.1, 0.1]
    error = refusal(text.replace("0.1", "-0.1"), BadNumber)
    assert error.source == "topology:5"


# What is refused, where, and the way out

WRONG = [
    (2, "name: vld\ntitle: x", BadTopology, "title", 3),
    (8, "    svc: 0.5", BadTopology, "arrivals.replays.svc", 8),
    (22, "    service_s: 0.02\n    gpu: 1", BadTopology, "operators.aggregate.gpu", 23),
    (2, "", BadTopology, "name", None),
    (4, "  frames: {into: extract}", BadTopology, "arrivals.frames", 4),
    (22, "    scv: 1", BadTopology, "operators.aggregate.scv", 22),
    (22, "    service_scv: 1", BadTopology, "operators.aggregate", 21),
    (1, "format: 2", BadTopology, "format", 1),
    (1, "format: true", BadTopology, "format", 1),
    (1, "format: [1]", BadTopology, "format", 1),
    (4, "  frames: 13", BadTopology, "arrivals.frames", 4),
    (4, "  frames:", BadTopology, "arrivals.frames", 4),
    (4, "  frames: {per_s: 1, into: [match]}", BadTopology, "arrivals.frames.into", 4),
    (11, "    service_s: fast", BadTopology, "operators.extract.service_s", 11),
    (17, "    route: any", BadTopology, "operators.match.route", 17),
    (23, "    min_processors: 2.5", BadTopology, "operators.aggregate.min_processors", 23),
    (8, "    scv: -0.5", BadNumber, "arrivals.replays.scv", 8),
    (13, "    emits: {match: .inf}", BadNumber, "operators.extract.emits.match", 13),
    (25, "    speed: 0", BadNumber, "operators.aggregate.speed", 25),
    (15, "    service_s: 1e12", BadNumber, "operators.match", 14),
    (15, "    service_s: 1e99", BadNumber, "operators.match.service_s", 15),
    (2, "name: 5", BadTopology, "name", 2),
    (4, "  a=b: {per_s: 13, into: extract}", BadTopology, "arrivals.a=b", 4),
    (4, "  replays: {per_s: 13, into: extract}", BadTopology, "arrivals.replays", 5),
    (13, "    emits: {match: 1, match: 1}", BadTopology, "operators.extract.emits.match", 13),
    (4, "  frames: {per_s: 1, into: mach}", BadTopology, "arrivals.frames.into.mach", 4),
    (16, "    emits: {agregate: 1}", BadTopology, "operators.match.emits.agregate", 16),
    (7, "    into: {extract: 0.2, match: 0.75}", BadNumber, "arrivals.replays.into", 7),
    (16, "    emits: {aggregate: 1.1}", BadNumber, "operators.match.emits", 16),
    (24, "    max_processors: 1", BadNumber, "operators.aggregate.max_processors", 24),
    (13, "    emits: {match: 10}", BadTopology, "operators.extract.emits", 13),
]


@pytest.mark.parametrize(
    ("number", "written", "kind", "place", "line"),
    WRONG,
    ids=[f"{kind.__name__}: {written.strip()}" for _, written, kind, *_ in WRONG],
)
def test_a_slip_is_refused_with_file_line_place_and_the_way_out(
    tmp_path, number, written, kind, place, line
):
    lines = GOOD.splitlines()
    lines[number - 1] = written
    path = tmp_path / "vld.yaml"
    path.write_text("\n".join(lines))
    with pytest.raises(BadTopology) as caught:
        read_topology(path)
    error = caught.value
    assert type(error) is kind
    assert error.source == (f"{path}:{line}" if line else str(path))
    assert str(error) == f"{error.source}: {place}: {error.problem}; {error.way_out}"
    assert error.way_out


def test_a_file_in_which_nothing_arrives_is_refused():
    assert str(refusal(small(per_s="0"), BadTopology)).startswith(
        "topology:3: arrivals: the arrival rate is 0"
    )


def test_json_is_refused_with_file_place_and_the_way_out(tmp_path):
    plain = document(VLD)
    plain["operators"]["match"]["service_s"] = -1
    path = tmp_path / "vld.json"
    path.write_text(json.dumps(plain))
    with pytest.raises(BadNumber) as caught:
        read_topology(path)
    assert str(caught.value) == (
        f"{path}: operators.match.service_s: -1 is negative, NaN or infinite; write 0 or more"
    )


@pytest.mark.parametrize(
    ("slip", "meant"),
    [("servce_s", "service_s"), ("emit", "emits"), ("max_processor", "max_processors")],
)
def test_a_misspelt_field_is_answered_with_the_right_one(slip, meant):
    error = refusal(small(**{slip: 1}), BadTopology)
    assert error.way_out == f"did you mean {meant}?"
    assert error.problem == f"unknown field {slip!r}"


def test_an_unheard_of_field_is_answered_with_all_there_are():
    error = refusal(small(gpu="true"), BadTopology)
    assert error.way_out.startswith("fields are service_s, service_scv, emits")


def test_the_name_of_a_record_is_not_a_field():
    assert refusal(small(name="other"), BadTopology).place == "operators.count.name"


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing\n", "---\n", "null", "~"])
def test_a_file_without_anything_is_told_so(text):
    error = refusal(text, BadTopology)
    assert "the file: nothing is not a mapping; write format: 1, name" in str(error)


@pytest.mark.parametrize("text", ["1", "text", "[1, 2]", "- format: 1", "'format: 1'", "true"])
def test_a_file_of_something_else_is_told_so(text):
    assert "is not a mapping" in str(refusal(text, BadTopology))


@pytest.mark.parametrize("section", ["arrivals", "operators"])
@pytest.mark.parametrize("value", ["", "[a]", "3", "text"], ids=repr)
def test_a_section_of_something_else_is_told_so(section, value):
    sections = {"arrivals": "{}", "operators": "{}", section: value}
    lines = "".join(f"{name}: {written}\n" for name, written in sections.items())
    error = refusal(f"format: 1\nname: x\n{lines}", BadTopology)
    assert error.place == section


# Files that are no files of ours

NO_FILES = {
    "tabs": (b"format: 1\n\tname: x\n", 2, "cannot start any token"),
    "unclosed": (b"format: 1\nname: [\n", 3, "expected the node content"),
    "unclosed quote": (b'format: 1\nname: "x\n', 3, "quoted scalar"),
    "two documents": (b"format: 1\n---\nformat: 1\n", 2, "expected a single document"),
    "unknown alias": (b"format: 1\nname: *x\n", 2, "undefined alias"),
    "anchor twice": (b"- &x 1\n- &x 2\n", 2, "found duplicate anchor"),
    "NUL": (b"format: 1\nname: x\0y\n", 2, "U+0000 is not allowed"),
    "control": (b"format: 1\nname: \x1b[1m\n", 2, "U+001B is not allowed"),
    "large letter": (rb'name: "\UFFFFFFFF"', None, "is not valid YAML"),
    "larger letter": (rb'name: "\U00110000"', None, "is not valid YAML"),
    "long version": (b"%YAML 1." + b"1" * 5000 + b"\n---\n", None, "is not valid YAML"),
    "deep list": (b"[" * 100_000, None, "nested too deeply"),
    "deep mapping": (b'{"a":' * 100_000, None, "nested too deeply"),
    "deep blocks": (b"- " * 3000, None, "nested too deeply"),
    "not UTF-8": (b"format: 1\nname: gr\xf6\xdfe\n", None, "is not UTF-8 text (byte 18)"),
    "UTF-16": ("format: 1".encode("utf-16"), None, "is not UTF-8 text (byte 0)"),
    "binary": (bytes(range(256)), None, "is not UTF-8 text (byte 128)"),
}  # fmt: skip


@pytest.mark.parametrize(("content", "line", "problem"), NO_FILES.values(), ids=list(NO_FILES))
def test_what_is_no_yaml_is_refused_with_file_line_and_problem(
    tmp_path, content, line, problem
):
    path = tmp_path / "x.yaml"
    path.write_bytes(content)
    with pytest.raises(BadFile) as caught:
        read_topology(path)
    source, said, way_out = caught.value.args
    assert source == (f"{path}:{line}" if line else str(path))
    assert problem in said
    assert way_out
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "Expecting property name"),
        ('{"a": 1,}', "Expecting property name"),
        ('{"a": 1, "a": 2}', "the name 'a' occurs twice"),
        ('{"a": {"b": 1, "c": 2, "b": 3}}', "the name 'b' occurs twice"),
        ('{"a":' * 100_000, "recursion"),
        ('{"a": 1} x', "Extra data"),
    ],
    ids=["unclosed", "comma", "twins", "inner twins", "deep", "more"],
)
def test_what_is_no_json_is_refused_with_the_file(text, problem):
    error = refusal(text, BadFile, source="x.json")
    assert str(error).startswith("x.json: is not valid JSON: ")
    assert problem in str(error)


def test_twins_in_json_of_another_name_are_refused_with_their_line():
    text = '{"format": 1,\n "name": "x",\n "name": "y"}'
    assert str(refusal(text, BadTopology)).startswith("topology:3: name: the name occurs twice")


@pytest.mark.parametrize("written", ["NaN", "Infinity", "-Infinity", "1e999", "9" * 5000])
@pytest.mark.parametrize("source", ["x.json", "x.yaml"])
def test_json_numbers_that_are_no_quantities_are_refused_in_their_place(written, source):
    text = json.dumps(document(VLD)).replace('"speed": 2', f'"speed": {written}')
    error = refusal(text, BadNumber, source=source)
    assert error.place == "operators.aggregate.speed"


def test_half_a_surrogate_pair_is_no_name():
    """It could not be printed: not in a table, not even in this error."""
    text = json.dumps(document(VLD)).replace("frames", r"\ud800")
    error = refusal(text, BadTopology)
    assert error.problem.startswith(repr("\ud800"))
    assert str(error).encode()


def test_a_deep_value_that_json_still_reads_is_refused():
    """Python reads what it then could not write into a message."""
    for depth in range(100, 1000, 30):
        deep = "[" * depth + "]" * depth
        text = json.dumps(document(VLD)).replace('"vld"', deep)
        refusal(text)
        refusal(text, source="x.json")


@pytest.mark.parametrize(
    "joke",
    [
        "arrivals: {}\noperators: {}",
        "arrivals: *p\noperators: {}",
        "arrivals: {in: {per_s: *p, into: a}}\noperators: {}",
        "arrivals: {in: {per_s: 1, into: *p}}\noperators: {a: {service_s: 1}}",
        "arrivals: {}\noperators: {a: {service_s: 1, route: *p}}",
        "*p : 1",
        "? [*p, *p]\n: 1",
    ],
)
def test_a_billion_laughs_end_quickly(joke):
    """A page of aliases that is 10^16 items if anything writes them all out."""
    laughs = "name:\n- &a [ha, ha, ha, ha, ha, ha, ha, ha, ha, ha]\n"
    for before, after in pairwise("abcdefghijklmnop"):
        laughs += f"- &{after} [{', '.join([f'*{before}'] * 10)}]\n"
    error = refusal(f"format: 1\n{laughs}{joke}\n", BadTopology)
    assert len(str(error)) < 200


@pytest.mark.parametrize(
    "text",
    ["&a [*a]", "&a {a: *a}", "name: &a [[*a], *a]", "? &a [*a]\n: 1", "&a {x: {y: *a}}"],
)
def test_what_contains_itself_is_refused(text):
    error = refusal(text, BadTopology)
    assert error.problem == "it is nested too deeply"
    assert error.source == "topology:1"


@pytest.mark.parametrize("levels", [5, 19, 25])
def test_what_is_nested_too_deeply_is_refused(levels):
    refusal(f"format: 1\nname: {'[' * levels}{']' * levels}\n", BadTopology)


def test_a_missing_file_is_told_so(tmp_path):
    with pytest.raises(BadFile, match=r"no\.yaml: cannot be read: No such file"):
        read_topology(tmp_path / "no.yaml")


def test_a_folder_is_told_so(tmp_path):
    with pytest.raises(BadFile, match="cannot be read: Is a directory; check the path"):
        read_topology(tmp_path)


def test_an_impossible_path_is_told_so():
    with pytest.raises(BadFile, match="cannot be read: embedded null byte") as caught:
        read_topology(Path("a\0b"))
    assert str(caught.value).isprintable()


# Whatever a file holds


def answer(text, source="topology"):
    """Return the refusal of *text*, or nothing if it is a topology, and a sound one."""
    try:
        topology = parse_topology(text, source=source)
    except SojournError as error:
        return str(error)
    for name, load in topology.loads.items():
        assert load.min_processors >= 1
        assert load.arrivals_per_s >= 0
        assert load.arrival_scv >= 0
        assert isfinite(topology.visits[name])
    return ""


TOKENS = [
    *"ab19-+.:,?|>&*!%@`'\"\\#~=[]{} \n\t\r\0\x85\u2028\ufeffé",
    *("\n  ", ": ", "- ", "? ", "---\n", "...\n", "&a ", "*a", "!!str ", "!<x> ", "%YAML 1.1"),
    *("%TAG ! a", "<<: ", '"\\U', "FFFFFFFF", "\\x", "1e3", "null", "format: 1\n", "name: x\n"),
    *("arrivals: ", "operators: ", "{", "service_s: ", "per_s: 1", "into: a", "\ud800", "😀"),
]


fragments = st.lists(st.sampled_from(TOKENS)).map("".join)


@given(text=st.text() | fragments)
def test_any_text_is_answered(text):
    assert answer(text).isprintable()
    assert answer("{" + text, source="x.json").isprintable()
    assert answer(f"format: 1\nname: x\narrivals: {text}").isprintable()


@given(content=st.binary() | fragments.map(lambda text: text.encode(errors="surrogatepass")))
def test_any_file_is_answered(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "any"
    path.write_bytes(content)
    with pytest.raises(SojournError, match=str(path)):
        read_topology(path)


FIELDS = [
    *("format", "name", "arrivals", "operators", "per_s", "into", "scv", "service_s", "emits"),
    *("route", "dispatch", "speed", "min_processors", "max_processors", "extract", "match"),
]
names = st.sampled_from(FIELDS) | st.text(max_size=5)
extremes = st.sampled_from(
    [0, 1, -1, 1e308, 5e-324, 1e-300, 10**18, 2**64, 10**308, 10**400, 10**4000, -(10**4000)]
)
scalars = st.none() | st.booleans() | st.integers() | st.floats() | extremes | names
junk = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=6,
)


@given(plain=junk, section=st.sampled_from([None, "name", "arrivals", "operators"]))
def test_any_plain_data_is_answered(plain, section):
    if section is not None:
        plain = document(VLD) | {section: plain}
    assert answer(yaml.safe_dump(plain)).isprintable()
    assert answer(json.dumps(plain)).isprintable()
    assert answer(json.dumps(plain), source="x.json").isprintable()


def slots(plain):
    """Return every place in *plain* that holds a value, as the mapping and the key."""
    if isinstance(plain, dict):
        for key, value in plain.items():
            yield plain, key
            yield from slots(value)


@st.composite
def spoilt(draw):
    """Draw a good document in which something was deleted, replaced, renamed or added."""
    plain = document(VLD)
    for _ in range(draw(st.integers(1, 3))):
        found = list(slots(plain)) or [(plain, "name")]
        inside, key = found[draw(st.integers(0, len(found) - 1))]
        action = draw(st.sampled_from(["delete", "replace", "rename", "add"]))
        if action in {"delete", "rename"}:
            value = inside.pop(key, None)
        if action == "rename":
            inside[draw(names)] = value
        elif action != "delete":
            inside[key if action == "replace" else draw(names)] = draw(extremes | junk)
    return plain


@given(plain=spoilt())
def test_any_slip_in_a_good_file_is_answered(plain):
    assert answer(yaml.safe_dump(plain)).isprintable()
    assert answer(json.dumps(plain)).isprintable()


quantities = (
    extremes.filter(lambda n: 0 <= n < 10**309) | st.floats(0, 3) | st.floats(1e-18, 1e18)
)


@given(data=st.data())
def test_any_numbers_in_a_good_file_are_answered(data):
    """Gains, rates and times of any size: nothing overflows on the way to a refusal."""
    plain = document(VLD)
    plain["arrivals"]["replays"]["into"] = "match"
    plain["operators"]["match"]["route"] = "each"
    for inside, key in slots(plain):
        written = inside[key]
        if isinstance(written, int | float) and key != "format" and data.draw(st.booleans()):
            inside[key] = data.draw(quantities)
    assert answer(json.dumps(plain)).isprintable()


def test_cores_and_what_computes_are_read():
    topology = parse_topology(small(cpu_s=0.005) + "cores: 2.5\n")
    assert topology.cores == 2.5
    assert topology.operators[0].cpu_s == 0.005
    assert parse_topology(json.dumps(document(topology))) == topology
    assert parse_topology(small() + "cores: null\n").cores is None


def test_cores_of_nodes_are_read_and_written():
    topology = parse_topology(small(cpu_s=0.005) + "cores: {left: 4, right: 2.5}\n")
    assert topology.cores == NodeCores(nodes={"left": 4, "right": 2.5})
    assert parse_topology(topology_text(topology)) == topology
    error = refusal(small() + "cores: {left: 0}\n", BadNumber, source="a.yaml")
    assert "a node has none; write more than 0" in str(error)


def test_a_slip_in_cores_names_its_line():
    error = refusal(small() + "cores: none\n", BadTopology, source="a.yaml")
    assert str(error).endswith("cores: 'none' is not a number; write 0 or more")
    assert refusal(small() + "core: 2\n", BadTopology).way_out == "did you mean cores?"

import copy
import inspect
import pickle
import pkgutil
from importlib import import_module

import pytest

import sojourn
from sojourn import errors

CLASSES = {
    name: kind
    for name, kind in inspect.getmembers(errors, inspect.isclass)
    if kind.__module__ == errors.__name__
}

RAISED = [
    errors.SojournError("no"),
    errors.BadInput("no"),
    errors.CannotBeDone("no"),
    errors.BadPlace("a place", "is wrong", "correct it"),
    errors.BadFile("vld.yaml:3", "is not YAML", "correct it there"),
    *(
        kind("operators.a", "-1 is negative", "write 0 or more")
        for kind in CLASSES.values()
        if issubclass(kind, errors.BadTopology)
    ),
    errors.BadApplication("operators.split", "takes 2 arguments", "take 1"),
    errors.BadSchema("operators.split.emits", "'strng' is no type", "write string"),
    errors.BadRecord("split.words.n", "'seven' is not a bigint"),
    errors.BadAllocation("no"),
    errors.BadTarget("no"),
    errors.BadWorkload("no"),
    errors.EngineError("no"),
    errors.ApplicationStarting("waiting for executors of Spark"),
    errors.ApplicationStopped("split: record lines/0/7: ValueError: no"),
    errors.BrokerAway(102.0),
    errors.DiskFull("the log", "/state"),
    errors.NoJava("java is not on the PATH", 17),
    errors.JarsMissing(("org.apache.kafka:kafka_2.13:3.9.2",), "not found"),
    errors.RegistryAway("registry:8081", "timed out", 900.0),
    errors.BrokerFailed("port 9092 is in use", "name another", ("Address already in use",)),
    errors.UnstableStation(3, 5, "match"),
    errors.HotKey("match", 1.3, 0.4, "the"),
    errors.TooFewCores(2.3, 2),
    errors.TooFewProcessors(3, {"extract": 7, "match": 8}),
    errors.BoundTooLow("match", 3, 8),
    errors.TargetBelowFloor("mean 1 s", 1.07),
    errors.TargetOutOfReach("mean 1.2 s", 1.4, 20, 23),
    errors.TargetTooStrict("mean 1.2 s", 1.21, 20),
    errors.EndlessLoop("no"),
]


def drawn():
    """Return the parent of each error as the module's docstring draws it."""
    parents, path = {}, []
    for line in errors.__doc__.splitlines():
        branch, dashes, rest = line.rpartition("── ")
        if dashes or line == "SojournError":
            name = (rest or line).split()[0]
            depth = (len(branch) + 3) // 4 if dashes else 0
            parents[name] = path[depth - 1] if depth else "Exception"
            path[depth:] = [name]
    return parents


def test_the_tree_in_the_docstring_is_the_tree_of_classes():
    assert drawn() == {name: kind.__base__.__name__ for name, kind in CLASSES.items()}


def test_every_error_says_what_is_wrong():
    assert all(kind.__doc__ for kind in CLASSES.values())


def test_every_error_is_tried_here():
    assert {type(error) for error in RAISED} == set(CLASSES.values())


@pytest.mark.parametrize("error", RAISED, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize(
    "twin", [lambda error: pickle.loads(pickle.dumps(error)), copy.copy], ids=["pickle", "copy"]
)
def test_errors_survive_the_way_between_processes(error, twin):
    other = twin(error)
    assert type(other) is type(error)
    assert str(other) == str(error)
    assert other.args == error.args
    assert vars(other) == vars(error)


def test_a_source_given_later_is_pickled_too():
    """A file's reader catches what a record raised, and adds the file and the line."""
    error = errors.BadNumber("operators.a", "-1 is negative", "write 0 or more")
    error.source = "vld.yaml:3"
    other = pickle.loads(pickle.dumps(error))
    assert other.source == "vld.yaml:3"
    assert str(other) == "vld.yaml:3: operators.a: -1 is negative; write 0 or more"


def test_without_a_file_the_place_comes_first():
    error = errors.BadNumber("operators.a", "-1 is negative", "write 0 or more")
    assert str(error) == "operators.a: -1 is negative; write 0 or more"
    assert (error.place, error.problem, error.way_out, error.source) == (*error.args, "")


@pytest.mark.parametrize(
    "error",
    [
        errors.BadTopology("operators.\ud800\x1b[1m", "\ud800 is odd", "change it"),
        errors.BadFile("\udcff.yaml", "cannot be read", "check the path"),
        errors.BadApplication("operators.\x1b", "is odd", "change it"),
        errors.BadRecord("words.\ud800", "is odd"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_a_terminal_cannot_show_is_escaped(error):
    """Half a surrogate pair cannot be printed, and an escape sequence would be obeyed."""
    assert str(error).isprintable()
    assert str(error).encode()


SAID = """
3 processors cannot keep up; at least 5 are needed
match: 3 processors cannot keep up; at least 5 are needed
the load needs 2.3 cores, but there are 2; more processors do not help,
  only more cores, less load or less computing per record
3 processors cannot keep up; at least 15 are needed (extract=7, match=8)
match: max_processors is 3, but 8 are needed to keep up;
  raise it, or make the operator faster
no number of processors reaches a mean of 1 s: without any waiting it is still 1.07 s;
  make the operators faster, or raise the target
20 processors do not reach a mean of 1 s: their best use gives 1.4 s; 23 are needed
20 processors do not reach a mean of 1 s: their best use gives 1.4 s;
  raise max_processors: every operator is at its maximum
more than 20 processors are needed to reach a mean of 1 s: the best use of 20 gives 1.01 s;
  choose a target above that
"""


def test_errors_read_as_sentences_with_their_numbers():
    raised = [
        errors.UnstableStation(3, 5),
        errors.UnstableStation(3, 5, "match"),
        errors.TooFewCores(2.3, 2),
        errors.TooFewProcessors(3, {"extract": 7, "match": 8}),
        errors.BoundTooLow("match", 3, 8),
        errors.TargetBelowFloor("a mean of 1 s", 1.07),
        errors.TargetOutOfReach("a mean of 1 s", 1.4, 20, 23),
        errors.TargetOutOfReach("a mean of 1 s", 1.4, 20),
        errors.TargetTooStrict("a mean of 1 s", 1.01, 20),
    ]
    assert [str(error) for error in raised] == SAID.replace("\n  ", " ").split("\n")[1:-1]


def test_the_end_of_a_brokers_log_stands_below_what_failed():
    error = errors.BrokerFailed("it ended", "see its log", ("first\x1b[1m", "last"))
    assert str(error).splitlines() == ["it ended; see its log", "  first\\x1b[1m", "  last"]


def modules():
    found = pkgutil.walk_packages(sojourn.__path__, "sojourn.")
    # importing __main__ runs the command line
    return [import_module(m.name) for m in found if not m.name.endswith("__main__")]


def test_only_packages_list_what_they_export():
    for module in modules():
        exported = getattr(module, "__all__", [])
        assert not exported or hasattr(module, "__path__"), module.__name__
        assert all(hasattr(module, name) for name in exported), module.__name__
        # constants, then classes, then functions, each by the alphabet
        order = sorted(exported, key=lambda n: (not n.isupper(), not n[0].isupper(), n))
        assert list(exported) == order, module.__name__


def test_modules_are_found():
    assert {"sojourn.errors", "sojourn.topology"} <= {module.__name__ for module in modules()}

"""`sojourn state` as a user runs it: what it prints, and how it ends."""

import json
from functools import partial

import pytest
from pyarrow import parquet
from typer.testing import CliRunner

import sojourn as sj
from sojourn.cli import app
from sojourn.service.control import serving
from sojourn.service.folders import state_folder
from sojourn.service.name_lock import NameLock
from sojourn.spark.driver.state.checkpoints import Checkpoints
from state_folders import StateWriter, counting


@pytest.fixture(autouse=True)
def own(places):
    """Come before all that writes there."""
    return places


@pytest.fixture
def words():
    """Return what writes the state of the application `words`, in its default folder."""
    writer = StateWriter(state_folder("words"), counting({"n": 0, "text": ""}))
    states = {'["the"]': {"n": 3, "text": "longer"}, '["\\u001b[1m"]': {"n": 1, "text": ""}}
    writer.commit(states)
    return writer


def run(*arguments):
    return CliRunner().invoke(app, ["state", *map(str, arguments)], env={"COLUMNS": "120"})


def said(*arguments):
    done = run(*arguments)
    assert done.exit_code == 0, done.output
    return done.stdout


def refused(*arguments):
    done = run(*arguments)
    assert done.exit_code == 2, done.output
    return done.stderr


@pytest.mark.usefixtures("words")
def test_operators_are_listed_with_keys_bytes_and_batch():
    head, _, row = said().splitlines()[:3]
    columns = ["keys", "bytes", "reminders", "batch", "committed"]
    assert head.split() == ["operator", "key", "fields", *columns]
    assert row.split()[:8] == ["count", "word", "string", "n", "bigint,", "text", "string", "2"]
    told = json.loads(said("--json"))
    assert list(told) == ["name", "state", "operators"]
    count = told["operators"]["count"]
    assert list(count) == ["key", "fields", *columns, "largest"]
    assert (count["keys"], count["batch"], count["key"]) == (2, 0, "word string")
    assert count["reminders"] == 1


@pytest.mark.usefixtures("words")
def test_an_operator_is_shown_with_its_largest_states():
    printed = said("count")
    assert "largest states" in printed
    assert printed.index("the ") < printed.index("\\x1b[1m"), "control characters are escaped"
    told = json.loads(said("count", "--json"))
    assert [largest["key"] for largest in told["largest"]] == [["the"], ["\x1b[1m"]]


@pytest.mark.usefixtures("words")
def test_a_key_is_shown_with_its_fields():
    assert said("count", "the").split() == [
        "key", "the", "bytes", "23", "n", "3", "text", '"longer"',
    ]  # fmt: skip
    assert json.loads(said("count", "the", "--json")) == {
        "operator": "count",
        "key": ["the"],
        "bytes": 23,
        "state": {"n": 3, "text": "longer"},
    }
    error = refused("count", "nobody")
    assert "operator count has no state of key 'nobody', so it has the defaults" in error


@pytest.mark.usefixtures("words")
def test_states_are_exported(tmp_path):
    path = tmp_path / "deep" / "counts.parquet"
    assert said("count", "--export", path) == f"exported 2 keys to {path}\n"
    assert sorted(parquet.read_table(path).to_pylist(), key=lambda row: row["n"]) == [
        {"word": "\x1b[1m", "n": 1, "text": ""},
        {"word": "the", "n": 3, "text": "longer"},
    ]
    told = json.loads(said("count", "--export", path, "--json"))
    assert told == {"operator": "count", "file": str(path), "keys": 2}
    assert "name an operator" in refused("--export", path)
    assert "leave out the key" in refused("count", "the", "--export", path)


@pytest.mark.usefixtures("words")
def test_a_folder_without_state_and_a_wrong_name_say_what_to_do(tmp_path):
    assert "known applications: words. If it was started with --state" in refused(
        "--app", "others"
    )
    folder = state_folder("words")
    error = refused("--app", "others", "--state", folder)
    assert f"{folder} is the state folder of words, not of 'others'" in error
    assert "operators with one: count" in refused("split")
    Checkpoints(tmp_path).keep(sj.App("empty"), "cluster")
    assert "no operator of empty keeps a state" in said("--state", tmp_path)
    assert json.loads(said("--state", tmp_path, "--json"))["operators"] == {}
    assert said("--state", tmp_path.as_uri()) == said("--state", tmp_path)
    assert "'s3a://b/empty' is not on a file system" in refused("--state", "s3a://b/empty")


def test_before_the_first_commit_there_are_no_keys():
    StateWriter(state_folder("words"), counting())
    assert said().splitlines()[2].split()[-3:] == ["0", "0", "never"]


def test_the_folder_of_a_running_application_is_known(tmp_path):
    state = tmp_path / "elsewhere"
    StateWriter(state, counting()).commit({'["the"]': {"n": 3}})
    with (
        NameLock("words", address="words:app", state=state, logs=state / "logs") as claim,
        serving(claim.socket, claim.token, partial(dict)),
    ):
        assert json.loads(said("count", "the", "--json"))["state"] == {"n": 3}


@pytest.mark.usefixtures("words")
def test_applications_and_operators_are_offered():
    for words_so_far, offered in (("state --app ", "words"), ("state ", "count")):
        environment = {
            "_SOJOURN_COMPLETE": "complete_bash",
            "COMP_WORDS": f"sojourn {words_so_far}",
            "COMP_CWORD": str(len(words_so_far.split()) + 1),
        }
        done = CliRunner().invoke(app, [], env=environment, prog_name="sojourn")
        assert done.stdout.split() == [offered]


@pytest.mark.usefixtures("words")
def test_an_application_in_place_of_an_operator_is_explained():
    assert "words has no operator words; words is an application: write --app words" in (
        refused("words", "count")
    )


@pytest.mark.usefixtures("words")
def test_a_backup_is_made_and_imported(tmp_path):
    backup = tmp_path / "words.states"
    told = f"exported 3 states of count to {backup}\n"
    assert said("--export", backup) == told
    assert said("--app", "words", "--import", backup) == (
        f"imported 3 states of count from {backup} into words\n"
    )
    assert json.loads(said("--app", "words", "--import", backup, "--json")) == {
        "name": "words", "file": str(backup), "operators": ["count"], "entries": 3,
    }  # fmt: skip
    assert json.loads(said("--export", backup, "--json"))["entries"] == 3


@pytest.mark.usefixtures("words")
@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--export", "a.parquet"), "--export a.parquet writes a backup of all operators"),
        (("--export", "a", "--import", "b"), "exclude each other; leave out one"),
        (("count", "the", "--export", "a.parquet"), "leave out the key"),
        (("count", "--import", "a"), "leave out the operator"),
        (("--import", "a"), "--import replaces states; name the application with --app"),
        (
            ("--app", "words", "--import", "nothing"),
            "nothing: cannot be read: No such file or directory",
        ),
    ],
)
def test_what_cannot_be_exported_or_imported_is_refused(arguments, problem):
    assert problem in refused(*arguments)

"""Which queries need a folder on every node, and what a node says of it: no Spark."""

import os
from pathlib import Path

import pytest

import sojourn as sj
from sojourn.errors import BadInput
from sojourn.spark.driver.layout import Layout
from sojourn.spark.driver.settings import SparkSettings
from sojourn.spark.driver.state.folder_address import read_folder
from sojourn.spark.driver.state.shared_folder import answer_token, written_by_tasks


def words(*, aggregated=False, deduplicated=False):
    app = sj.App("words")
    lines = app.source("lines", schema="word string")

    @app.operator(reads=lines.by("word"), emits="word string", state={"n": 0})
    def count(state, word):
        state["n"] += 1
        yield (word,)

    if aggregated:
        app.sink(app.aggregate("sums", reads=count, by="word", columns={"n": "count(*)"}))
    app.sink(count, deduplicate=deduplicated, name="counts")
    return Layout(app, "words:app")


def test_a_state_by_key_is_written_beside_the_driver_alone():
    assert written_by_tasks(words()) == []


def test_aggregations_and_sinks_without_repetitions_are_written_by_tasks():
    assert written_by_tasks(words(aggregated=True)) == ["sums"]
    assert written_by_tasks(words(deduplicated=True)) == ["sink counts"]


def test_a_node_that_has_the_folder_answers(tmp_path):
    (tmp_path / "asked").write_text("token")
    assert answer_token(tmp_path / "asked", tmp_path / "answered", "token") == ""
    assert (tmp_path / "answered").read_text() == "token"


def test_a_node_says_why_it_does_not_have_the_folder(tmp_path):
    asked, answered = tmp_path / "asked", tmp_path / "answered"
    assert answer_token(asked, answered, "token") == "a different folder is mounted there"
    asked.write_text("of another run")
    assert answer_token(asked, answered, "token") == "a different folder is mounted there"
    missing = tmp_path / "missing" / "asked"
    assert answer_token(missing, answered, "token") == "there is no such folder"
    assert not answered.exists()
    problem = answer_token(asked, tmp_path, "of another run")  # a folder cannot be written
    assert problem == f"it cannot be written there: {os.strerror(21)}"
    assert answer_token(tmp_path, answered, "").startswith("it cannot be read there")


@pytest.mark.parametrize("text", ["hdfs://name/orders", "s3a://bucket/orders", "abfss:/x"])
def test_storage_that_is_not_a_file_system_is_refused(text):
    with pytest.raises(BadInput, match="write the path of a folder"):
        read_folder(text)
    with pytest.raises(BadInput, match="is not on a file system"):
        SparkSettings(state=Path(text))


@pytest.mark.parametrize("text", ["file://other/orders", "file:orders", "FILE:"])
def test_an_address_of_a_file_that_is_not_here_is_refused(text):
    with pytest.raises(BadInput, match=r"write file:///PATH"):
        read_folder(text)


@pytest.mark.parametrize("text", ["c:orders", "a b:/c", "x:/y"])
def test_a_path_with_a_colon_is_a_path(text):
    assert read_folder(text) == Path(text)

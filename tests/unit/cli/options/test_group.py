from inspect import signature
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from sojourn.cli.options import JsonOption
from sojourn.cli.options.group import Group, expanded, option_names
from sojourn.cli.options.kafka import SparkEngineOptions


def read_pair(*, left: int = 1, right: Annotated[int, typer.Option(help="Its right.")] = 2):
    return (left, right)


Pair = Annotated[tuple[int, int], Group(read_pair)]


def read_nested(*, pair: Pair, name: str = "n"):
    return {name: pair}


def command(first: str, *, last: bool = False, nested: Annotated[dict, Group(read_nested)]):
    """Do it."""
    typer.echo(f"{first} {nested} {last}")


def test_a_group_stands_for_its_options_where_it_is():
    assert list(signature(expanded(command)).parameters) == [
        "first", "last", "left", "right", "name",
    ]  # fmt: skip
    assert expanded(command).__doc__ == "Do it."


def test_a_group_names_its_options_and_those_of_groups_in_it():
    assert option_names(SparkEngineOptions)[:3] == (
        "bootstrap_servers", "kafka_option", "kafka_options",
    )  # fmt: skip
    assert option_names(JsonOption) == ()


def test_a_command_without_groups_is_left_alone():
    assert expanded(read_pair) is read_pair


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["a"], "a {'n': (1, 2)} False"),
        (["a", "--right", "7", "--name", "m", "--last"], "a {'m': (1, 7)} True"),
    ],
)
def test_a_command_gets_one_value_for_a_group(arguments, said):
    app = typer.Typer()
    app.command()(expanded(command))
    done = CliRunner().invoke(app, arguments)
    assert done.stdout.strip() == said
    assert "Its right." in CliRunner().invoke(app, ["--help"]).stdout

"""`sojourn policies`: the policies and their options."""

from typing import Annotated, Any

import typer
from rich.text import Text

from sojourn.act.options import options
from sojourn.act.policy import names, policy
from sojourn.cli.options.address import import_from_here
from sojourn.cli.options.completion import policies as known
from sojourn.cli.options.output import JsonOption
from sojourn.cli.options.value import kind_text, value_text
from sojourn.decide.target import Target
from sojourn.report.json.output import print_json
from sojourn.report.terminal.console import TABLE_WIDTH, table, wide_console

__all__ = ["policies"]

# The options of a policy do not depend on its target.
_ANY = Target("mean", 1.0)
_COLUMNS = ("option", "value", "default", "meaning")


def policies(
    name: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME …",
            help="Policies (default: all built-in ones). Your own: package.module:name.",
            autocompletion=known,
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """List the policies and their options, for `--set` of `run` and `rehearse`.

    Example: sojourn policies drs
    """
    described = [_described(each) for each in name or names()]
    if json:
        print_json({"policies": described})
        return
    console = wide_console(TABLE_WIDTH)
    for number, each in enumerate(described):
        console.print(Text(f"\n{each['name']}" if number else each["name"], "bold"))
        console.print(Text(each["meaning"]))
        made = table(*_COLUMNS, wrapped=["value", "meaning"])
        for row in each["options"]:
            made.add_row(*map(Text, row.values()))
        if each["options"]:
            console.print(made)


def _described(name: str) -> dict[str, Any]:
    import_from_here(name)
    made = policy(name, target=_ANY)
    return {
        "name": name,
        "meaning": next(iter((type(made).__doc__ or "").strip().splitlines()), ""),
        "options": [
            {
                "name": option.name,
                "value": kind_text(option),
                "default": value_text(option, option.default),
                "meaning": option.meaning,
            }
            for option in options(made).values()
        ],
    }

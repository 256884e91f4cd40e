"""The reference of the command line, from the commands themselves."""

import re
import textwrap
from collections import defaultdict
from itertools import groupby
from typing import Literal, get_args, get_origin

import typer
from typer.main import get_command

import documents
from sojourn.cli import app

PAGE = documents.ROOT / "docs" / "reference" / "command-line.md"
BEGINNING = """\
# Command line

`make docs` writes this page from the commands; `sojourn COMMAND --help` prints the same.
[Output](output.md) has exit statuses, environment variables, shell completion and the fields of
`--json`. Arguments and options that several commands share are explained
[at the end](#shared-options).
"""
TYPES = {bool: "", int: "INTEGER", float: "NUMBER"}


def commands():
    """Return the commands in the order of the help, by panel."""
    found = get_command(app).commands.values()
    panels = list(dict.fromkeys(command.rich_help_panel for command in found))
    return sorted(found, key=lambda command: panels.index(command.rich_help_panel))


def row(parameter):
    """Return the row of an argument or option in a table."""
    if parameter.param_type_name == "argument":
        names = parameter.metavar or parameter.name.upper()
    else:
        names = f"{', '.join((*parameter.opts, *parameter.secondary_opts))} {taken(parameter)}"
    default = "" if parameter.default in (None, False, "") else f"`{parameter.default}`"
    if parameter.required:
        default = "required"
    return f"| `{in_a_table(names.strip())}` | {default} | {in_a_table(parameter.help or '')} |"


def taken(option):
    """Return what an option takes, in the words of the help."""
    if option.metavar:
        return option.metavar
    kind = option.type_descriptor.annotation
    if get_origin(kind) is Literal:
        return "|".join(get_args(kind))
    return TYPES.get(kind, "TEXT")


def in_a_table(text):
    """Return *text* on one line, as tables need it."""
    return re.sub(r"\s+", " ", text).replace("|", r"\|")


def shared_rows():
    """Return the rows that several commands have, by name of the argument or option.

    One that two groups of commands explain in two ways is not among them.
    """
    names = defaultdict(list)
    for command in commands():
        for each in command.params:
            names[row(each)].append(each.opts[0])
    several = sorted((found[0], text) for text, found in names.items() if len(found) > 1)
    by_name = {name: list(group) for name, group in groupby(several, lambda pair: pair[0])}
    return {name: group[0][1] for name, group in by_name.items() if len(group) == 1}


def section(command, shared):
    """Yield the lines of a command; the rows of *shared* options are elsewhere."""
    text, _, examples = command.help.partition("\n\nExample")
    usage = command.get_usage(typer.Context(command, info_name=f"sojourn {command.name}"))
    yield f"\n### sojourn {command.name}\n"
    yield f"`{' '.join(usage.removeprefix('Usage: ').split())}`\n"
    yield "\n\n".join(wrapped(paragraph) for paragraph in text.split("\n\n")) + "\n"
    yield from (
        f"    {' '.join(each.split())}" for each in examples.partition(": ")[2].split("·")
    )
    own = [each for each in command.params if shared.get(each.opts[0]) != row(each)]
    if own:
        yield "\n| argument, option | default | meaning |\n|---|---|---|"
        yield from map(row, own)
    if others := [f"`{name_of(each)}`" for each in command.params if each not in own]:
        yield "\n" + wrapped(f"Shared: {', '.join(others)}.")


def name_of(parameter):
    """Return the name under which the shared options explain a parameter."""
    is_argument = parameter.param_type_name == "argument"
    return parameter.metavar if is_argument and parameter.metavar else parameter.opts[0]


def wrapped(text):
    """Return a paragraph in lines."""
    return textwrap.fill(" ".join(text.split()), 98, break_on_hyphens=False)


def reference():
    """Return the text of the page."""
    shared = shared_rows()
    lines = [BEGINNING]
    for panel, group in groupby(commands(), lambda command: command.rich_help_panel):
        lines.append(f"\n## {panel}")
        for command in group:
            lines += section(command, shared)
    lines += [
        "\n## Shared options\n",
        "| argument, option | default | meaning |\n|---|---|---|",
    ]
    lines += shared.values()
    text = "\n".join(lines)
    return re.sub(r"\n{3,}", "\n\n", text) + "\n"

"""The reference of the command line, from the commands themselves."""

import re
import textwrap
from collections import defaultdict
from itertools import groupby

import typer
from typer.main import get_command

import documents
from sojourn.cli import app

PAGE = documents.ROOT / "docs" / "reference" / "command-line.md"
BEGINNING = """\
# Command line

`make docs` writes this page from the commands; `sojourn COMMAND --help` prints the same.
[Output](output.md) has exit statuses, environment variables, shell completion and the fields of
`--json`. Options that several commands share are explained [at the end](#shared-options).
"""
TYPES = {bool: "", int: " INTEGER", float: " NUMBER"}


def commands():
    """Return the commands in the order of the help, by panel."""
    found = get_command(app).commands.values()
    panels = list(dict.fromkeys(command.rich_help_panel for command in found))
    return sorted(found, key=lambda command: panels.index(command.rich_help_panel))


def options(command):
    """Return the options of a command, without its arguments."""
    return [each for each in command.params if each.param_type_name == "option"]


def row(option):
    """Return the row of an option in a table."""
    taken = option.metavar or TYPES.get(kind := option.type_descriptor.annotation)
    if taken is None:
        taken = "|".join(getattr(kind, "__args__", ())) if "Literal" in str(kind) else "TEXT"
    names = f"{', '.join((*option.opts, *option.secondary_opts))} {taken.strip()}".strip()
    default = "" if option.default in (None, False, "") else f"`{option.default}`"
    if option.required:
        default = "required"
    return f"| `{in_a_table(names)}` | {default} | {in_a_table(option.help or '')} |"


def argument_row(argument):
    """Return the row of an argument in a table."""
    name = argument.metavar or argument.name.upper()
    required = "required" if argument.required else ""
    return f"| `{in_a_table(name)}` | {required} | {in_a_table(argument.help or '')} |"


def in_a_table(text):
    """Return *text* on one line, as tables need it."""
    return re.sub(r"\s+", " ", text).replace("|", r"\|")


def shared_rows():
    """Return the rows that several commands have, by name of the option.

    An option that two groups of commands explain in two ways is not among them.
    """
    names = defaultdict(list)
    for command in commands():
        for option in options(command):
            names[row(option)].append(option.opts[0])
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
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    own = [each for each in options(command) if shared.get(each.opts[0]) != row(each)]
    if arguments or own:
        yield "\n| argument, option | default | meaning |\n|---|---|---|"
        yield from map(argument_row, arguments)
        yield from map(row, own)
    if others := [f"`{each.opts[0]}`" for each in options(command) if each not in own]:
        yield "\n" + wrapped(f"Shared: {', '.join(others)}.")


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
    lines += ["\n## Shared options\n", "| option | default | meaning |\n|---|---|---|"]
    lines += shared.values()
    text = "\n".join(lines)
    return re.sub(r"\n{3,}", "\n\n", text) + "\n"

"""`sojourn dead-letters`: the records that operators could not process, and why."""

from typing import Annotated

import typer

from sojourn.cli.options.letters import LettersOptions
from sojourn.cli.options.output import JsonOption
from sojourn.errors import BadInput
from sojourn.report.json.output import print_json
from sojourn.report.terminal.dead_letters import letter_json, print_letter, print_letters

__all__ = ["dead_letters"]


def dead_letters(
    *,
    show: Annotated[
        str | None,
        typer.Option(
            metavar="POSITION", help="Show one with its traceback, headers and payload."
        ),
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, help="Number to list, the newest.")
    ] = 100,
    which: LettersOptions,
    json: JsonOption = False,
) -> None:
    """List the records that operators could not process, the newest last.

    Those that were retried are not listed.

    Example: sojourn dead-letters --since 2h
    """
    letters = which.opened()
    found = letters.found(which.since_s)
    if show is not None:
        one = next((letter for letter in found if letter.position == show), None)
        if one is None:
            raise BadInput(
                f"there is no dead letter at {show}, or it was retried; "
                "`sojourn dead-letters` lists them"
            )
        if json:
            print_json(letter_json(one))
        else:
            print_letter(one)
        return
    shown = found[-limit:]
    if json:
        listed = [letter_json(letter) for letter in shown]
        print_json({"topic": letters.topic, "number": len(found), "dead_letters": listed})
        return
    if not found:
        typer.echo(f"no dead letters in {letters.topic}")
        return
    print_letters(shown)
    if len(shown) < len(found):
        typer.echo(f"the last {len(shown)} of {len(found)}; --limit shows more")

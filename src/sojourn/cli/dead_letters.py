"""`sojourn dead-letters` and `retry`: the records that operators could not process."""

from typing import Annotated

import typer
from typer import Argument, Option

from sojourn.cli.options.letters import LettersOptions
from sojourn.cli.options.output import JsonOption
from sojourn.errors import BadInput
from sojourn.escaped import escaped_lines
from sojourn.report.json.output import print_json
from sojourn.report.terminal.dead_letters import letter_json, print_letter, print_letters

__all__ = ["dead_letters", "retry"]

NOT_ALL = 3


def dead_letters(
    *,
    show: Annotated[
        str | None,
        Option(metavar="POSITION", help="Show one with its traceback, headers and payload."),
    ] = None,
    limit: Annotated[
        int, Option("--limit", "-n", min=1, help="Number to list, the newest.")
    ] = 100,
    which: LettersOptions,
    json: JsonOption = False,
) -> None:
    """List the records that operators could not process, the newest last.

    Those that were retried are not listed.

    Example: sojourn dead-letters --since 2h
    """
    letters = which.opened()
    if show is not None:
        (one,) = letters.chosen(which.since_s, [show])
        if json:
            print_json(letter_json(one))
        else:
            print_letter(one)
        return
    found = letters.found(which.since_s)
    shown = found[-limit:]
    if json:
        listed = [letter_json(letter) for letter in shown]
        print_json({"topic": letters.topic, "number": len(found), "dead_letters": listed})
    elif not found:
        typer.echo(f"no dead letters in {letters.topic}")
    else:
        print_letters(shown)
        if len(shown) < len(found):
            typer.echo(f"the last {len(shown)} of {len(found)}; --limit shows more")


def retry(
    positions: Annotated[
        list[str] | None,
        Argument(
            metavar="POSITION …", help="Dead letters to retry, as `dead-letters` lists them."
        ),
    ] = None,
    *,
    operator: Annotated[
        list[str] | None, Option(help="Retry those of this operator; may be repeated.")
    ] = None,
    every: Annotated[bool, Option("--all", help="Retry all.")] = False,
    which: LettersOptions,
) -> None:
    """Retry dead letters at the operators that failed. Correct the cause first.

    Each record is written, unchanged and with its id, to the topic it came from; other
    operators that read this topic skip it.

    Example: sojourn retry --operator parse
    """
    if not (positions or operator or every):
        raise BadInput(
            "no dead letters are selected; write positions, --operator NAME, or --all"
        )
    letters = which.opened()
    chosen = letters.chosen(which.since_s, positions or (), operator or ())
    from sojourn.spark.driver.kafka.retry import retry_letters  # noqa: PLC0415 - optional, checked before

    failed = 0
    for letter, why_not in retry_letters(letters, chosen):
        if why_not:
            failed += 1
            said = f"{letter.position} was not retried: {why_not}"
            typer.echo(escaped_lines(said), err=True)
    typer.echo(f"{len(chosen) - failed} of {len(chosen)} dead letters were retried")
    if failed:
        raise typer.Exit(NOT_ALL)

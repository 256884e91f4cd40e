"""`sojourn retry`: dead letters are put back in, to be worked on again."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from sojourn.cli.options.letters import LettersOptions
from sojourn.errors import BadInput

if TYPE_CHECKING:  # Kafka's client is optional
    from sojourn.spark.dead_letters import DeadLetter

__all__ = ["retry"]

NOT_ALL = 3


def retry(
    positions: Annotated[
        list[str] | None,
        typer.Argument(metavar="POSITION …", help="Which, as `dead-letters` lists them."),
    ] = None,
    *,
    operator: Annotated[
        list[str] | None,
        typer.Option(help="Those of this operator; may be repeated."),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="All there are.")] = False,
    which: LettersOptions,
) -> None:
    """Put dead letters back in, so that the operators that failed work on them again.

    Each record is written to the topic that it came from, as it was and with its id; other
    operators that read the topic pass it by. Correct what made them fail before.

    Example: sojourn retry --operator parse
    """
    if not (positions or operator or every):
        raise BadInput("which? write positions, --operator NAME, or --all")
    letters = which.opened()
    chosen = _chosen(letters.found(which.since_s), positions or (), operator or ())
    from sojourn.spark.retry import retry_letters  # noqa: PLC0415 - optional, and there by now

    failed = 0
    for letter, why_not in retry_letters(letters, chosen):
        if why_not:
            failed += 1
            typer.echo(f"{letter.position} is not put back in: {why_not}", err=True)
    typer.echo(f"{len(chosen) - failed} of {len(chosen)} dead letters are put back in")
    if failed:
        raise typer.Exit(NOT_ALL)


def _chosen(
    found: "list[DeadLetter]", positions: Sequence[str], operators: Sequence[str]
) -> "list[DeadLetter]":
    """Return those that are meant; raise a `BadInput` that names what is not there."""
    for what, asked, there in (
        ("dead letter at", positions, {letter.position for letter in found}),
        ("dead letter of operator", operators, {letter.operator for letter in found}),
    ):
        for name in asked:
            if name not in there:
                raise BadInput(
                    f"there is no {what} {name}, or all were put back in; "
                    "`sojourn dead-letters` lists them"
                )
    return [
        letter
        for letter in found
        if (not positions or letter.position in positions)
        and (not operators or letter.operator in operators)
    ]

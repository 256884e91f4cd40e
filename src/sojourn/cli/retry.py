"""`sojourn retry`: send dead letters to their operators again."""

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
        typer.Argument(
            metavar="POSITION …", help="Dead letters to retry, as `dead-letters` lists them."
        ),
    ] = None,
    *,
    operator: Annotated[
        list[str] | None,
        typer.Option(help="Retry those of this operator; may be repeated."),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Retry all.")] = False,
    which: LettersOptions,
) -> None:
    """Retry dead letters at the operators that failed. Correct the cause first.

    Each record is written, unchanged and with its id, to the topic it came from; other
    operators that read this topic skip it.

    Example: sojourn retry --operator parse
    """
    if not (positions or operator or every):
        raise BadInput("no dead letters are named; write positions, --operator NAME, or --all")
    letters = which.opened()
    chosen = _chosen(letters.found(which.since_s), positions or (), operator or ())
    from sojourn.spark.retry import retry_letters  # noqa: PLC0415 - optional, checked before

    failed = 0
    for letter, why_not in retry_letters(letters, chosen):
        if why_not:
            failed += 1
            typer.echo(f"{letter.position} was not retried: {why_not}", err=True)
    typer.echo(f"{len(chosen) - failed} of {len(chosen)} dead letters were retried")
    if failed:
        raise typer.Exit(NOT_ALL)


def _chosen(
    found: "list[DeadLetter]", positions: Sequence[str], operators: Sequence[str]
) -> "list[DeadLetter]":
    """Return those that are asked for. Raise a `BadInput` that names what does not exist."""
    for what, asked, there in (
        ("dead letter at", positions, {letter.position for letter in found}),
        ("dead letter of operator", operators, {letter.operator for letter in found}),
    ):
        for name in asked:
            if name not in there:
                raise BadInput(
                    f"there is no {what} {name}, or it was retried; "
                    "`sojourn dead-letters` lists them"
                )
    return [
        letter
        for letter in found
        if (not positions or letter.position in positions)
        and (not operators or letter.operator in operators)
    ]

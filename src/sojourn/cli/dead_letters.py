"""`sojourn dead-letters`: the records that operators could not do, and why."""

import base64
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from sojourn.cli.options.letters import LettersOptions
from sojourn.cli.options.output import JsonOption
from sojourn.errors import BadInput
from sojourn.escaped import escaped
from sojourn.report.json.plans import print_json

if TYPE_CHECKING:  # Kafka's client is optional
    from sojourn.spark.dead_letters import DeadLetter

__all__ = ["dead_letters"]

_WIDEST = 200
_COLUMNS = ("position", "at", "operator", "stream", "tries", "came from", "error")


def dead_letters(
    *,
    show: Annotated[
        str | None,
        typer.Option(metavar="POSITION", help="All of one: traceback, headers, payload."),
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, help="How many, the newest.")
    ] = 100,
    which: LettersOptions,
    json: JsonOption = False,
) -> None:
    """List the records that operators could not do, the newest last.

    Those that `sojourn retry` has put back in are not listed.

    Example: sojourn dead-letters --since 2h
    """
    letters = which.opened()
    found = letters.found(which.since_s)
    if show is not None:
        one = next((letter for letter in found if letter.position == show), None)
        if one is None:
            raise BadInput(
                f"there is no dead letter at {show}, or it was put back in; "
                "`sojourn dead-letters` lists them"
            )
        _print_one(one, as_json=json)
        return
    shown = found[-limit:]
    if json:
        listed = [_report(letter) for letter in shown]
        print_json({"topic": letters.topic, "number": len(found), "dead_letters": listed})
        return
    if not found:
        typer.echo(f"no dead letters in {letters.topic}")
        return
    _print_table(shown)
    if len(shown) < len(found):
        typer.echo(f"the last {len(shown)} of {len(found)}; --limit shows more")


def _print_table(letters: "list[DeadLetter]") -> None:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for name in _COLUMNS:
        table.add_column(name, no_wrap=name != "error")
    for letter in letters:
        cells = (letter.position, _time(letter.at_s), letter.operator, letter.stream,
                 letter.tries, letter.came_from, _first_line(letter.error))  # fmt: skip
        table.add_row(*(Text(escaped(str(cell))) for cell in cells))
    console = Console()
    if not console.is_terminal:
        console = Console(width=_WIDEST)
    console.print(table)


def _print_one(letter: "DeadLetter", *, as_json: bool) -> None:
    report = _report(letter)
    if as_json:
        print_json(report)
        return
    for name in ("position", "at", "operator", "stream", "tries", "came_from", "record", "key"):
        typer.echo(f"{name.replace('_', ' '):<10} {escaped(str(report[name]))}")
    for name, value in report["headers"].items():
        typer.echo(f"{'header':<10} {escaped(f'{name}: {value}')}")
    typer.echo(f"{'error':<10} {escaped(letter.error)}")
    for line in letter.traceback.splitlines():
        typer.echo(f"    {escaped(line)}")
    cut = ", its beginning" if letter.cut else ""
    typer.echo(f"{'payload':<10} {escaped(str(report['payload']))}{cut}")


def _report(letter: "DeadLetter") -> dict[str, Any]:
    return {
        "position": letter.position,
        "at": _time(letter.at_s),
        "operator": letter.operator,
        "stream": letter.stream,
        "tries": letter.tries,
        "came_from": letter.came_from,
        "record": letter.record,
        "error": letter.error,
        "traceback": letter.traceback,
        "key": _content(letter.key),
        "payload": _content(letter.value),
        "cut": letter.cut,
        "headers": {
            name: _content(value)
            for name, value in letter.headers
            if name not in ("sojourn-error", "sojourn-traceback")
        },
    }


def _content(value: bytes | None) -> str | None:
    """Return what is text as it is, and else in base64."""
    if value is None:
        return None
    try:
        return value.decode()
    except UnicodeDecodeError:
        return f"base64:{base64.b64encode(value).decode()}"


def _time(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).isoformat(timespec="seconds")


def _first_line(text: str) -> str:
    return next(iter(text.splitlines()), "")

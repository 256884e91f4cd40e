"""`sojourn apps`: the applications that come with Sojourn, and a check of their results."""

import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from typer import Argument, Option

from sojourn.cli.options import JsonOption
from sojourn.errors import BadInput
from sojourn.measure.duration import read_positive_s
from sojourn.registry import optional
from sojourn.report.json.output import print_json
from sojourn.report.terminal.console import TABLE_WIDTH, say, table, wide_console
from sojourn.report.terminal.progress import working
from sojourn_papers.apps.catalogue import CATALOGUE, entry

_DIFFERS = 1


def apps(
    action: Annotated[str, Argument(metavar="[list|check]", help="What to do.")] = "list",
    name: Annotated[
        str | None, Argument(metavar="[NAME]", help="check: the application.")
    ] = None,
    *,
    rate: Annotated[
        float,
        Option(metavar="PER_S", min=0.001, help="check: sample records per second."),
    ] = 5.0,
    lasts: Annotated[
        str, Option("--for", metavar="TIME", help="check: how long samples are sent.")
    ] = "30s",
    database: Annotated[
        str,
        Option(
            metavar="URL",
            help="check: the database it writes to: postgresql://… (default: an SQLite file).",
        ),
    ] = "",
    json: JsonOption = False,
) -> None:
    """List the applications of the papers, or check one: run it on Spark and compare results.

    The check starts its own Kafka broker and Spark, sends sample records, and compares every
    result with one worked out without Spark. Exit status: 0 if they are equal, 1 if not.

    Examples: sojourn apps · sojourn apps check wordcount --rate 50 --for 20s
    """
    if action == "check" and name is not None:
        _check(name, rate, read_positive_s(lasts, "--for"), database, as_json=json)
    elif action == "list" and name is None:
        if json:
            print_json({"applications": [_described(each) for each in CATALOGUE]})
        else:
            wide_console(TABLE_WIDTH).print(_table())
    else:
        raise BadInput(
            f"{' '.join(filter(None, (action, name)))!r} is not an action; write list, or "
            f"check with one of {', '.join(CATALOGUE)}"
        )


def _described(name: str) -> dict[str, object]:
    made = CATALOGUE[name]
    return {
        "name": name,
        "address": made.address,
        "paper": made.paper,
        "operators": list(made.app.operators),
        "data": made.data,
        "shows": made.shows,
    }


def _table() -> Table:
    listed = table("application", "paper", "operators", "data", "shows", wrapped=("operators",))
    for name, made in CATALOGUE.items():
        operators = ", ".join(made.app.operators)
        listed.add_row(name, made.paper, operators, made.data, made.shows)
    return listed


def _check(name: str, per_s: float, lasts_s: float, database: str, *, as_json: bool) -> None:
    made = entry(name)
    with optional("the check needs", ",".join(filter(None, ("spark", made.extra)))):
        from sojourn_papers.apps.check import check  # noqa: PLC0415

        made.load_offline()
    with (
        tempfile.TemporaryDirectory(prefix="sojourn-") as folder,
        working(f"checking {name}") as progress,
    ):
        verdict = check(
            made,
            per_s=per_s,
            lasts_s=lasts_s,
            state=Path(folder),
            database=database,
            progress=progress,
        )
    if as_json:
        print_json({**asdict(verdict), "exact": verdict.exact})
    else:
        say(str(verdict))
    if not verdict.exact:
        raise typer.Exit(_DIFFERS)

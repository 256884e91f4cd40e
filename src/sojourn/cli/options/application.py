"""Which of the applications that run."""

from typing import Annotated

import typer

from sojourn.cli.options.completion import applications

__all__ = ["AppOption"]

AppOption = Annotated[
    str | None,
    typer.Option(
        "--app",
        metavar="NAME",
        help="Which application; the only one that runs.",
        autocompletion=applications,
    ),
]
